"""The page of `podium replay`: the recorded day, and the first decision that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cli.pages.decisions import decision_text, score_table
from podium.cli.pages.over_time import sections_of
from podium.cli.pages.sections import Facts, Page, Section
from podium.recording.timeline import Timeline

if TYPE_CHECKING:
    from podium.recording.counterfactual import Counterfactual
    from podium.recording.divergence import Divergence
    from podium.recording.replay import ReplayResult


def page_of(name: str, replay: ReplayResult, timeline: Timeline) -> Page:
    """Build the page.

    Args:
        name: the name of the recording.
    """
    outcome = replay.outcome
    divergence = outcome.divergence
    headline = "Every decision is the recorded one."
    if divergence is not None:
        headline = f"The first difference is at attempt {outcome.attempts}, after this: {divergence.event}."
    facts = {
        "attempts": str(outcome.attempts),
        "recorded time": f"{replay.virtual_s:.1f} s",
        "replayed in": f"{replay.wall_s:.1f} s",
        "digest": outcome.digest.hexdigest(),
        "recorded digest": outcome.recorded_digest.hexdigest(),
    }
    if replay.damage:
        facts["not read to its end"] = replay.damage
    sections = [
        Facts("Replay", facts),
        *([] if divergence is None else _difference_sections(divergence)),
        *sections_of(timeline),
    ]
    return Page(f"Replay of {name}", headline, sections, timeline.times_s, timeline.started_s)


def counterfactual_page(name: str, counterfactual: Counterfactual, timeline: Timeline) -> Page:
    """Build the page of a counterfactual replay: the whole recording under another configuration.

    Args:
        name: the name of the recording.
    """
    outcomes = counterfactual.outcomes
    counts = outcomes.as_value()
    facts = {field.replace("_", " "): "-" if value is None else str(value) for field, value in counts.items()}
    if counterfactual.damage:
        facts["not read to its end"] = counterfactual.damage
    headline = f"{outcomes.placed} pods would have been placed, and {outcomes.pending} would wait at the end."
    sections = [Facts("Result", facts), *sections_of(timeline)]
    return Page(f"Counterfactual replay of {name}", headline, sections, timeline.times_s, timeline.started_s)


def _difference_sections(divergence: Divergence) -> list[Section]:
    facts = {"after this": divergence.event}
    if divergence.recorded is None or divergence.replayed is None:
        return [Facts("First difference", {**facts, "what differs": divergence.detail})]
    recorded_decision, replayed_decision = divergence.recorded, divergence.replayed
    facts |= {"recorded": decision_text(recorded_decision), "replayed": decision_text(replayed_decision)}
    return [
        Facts("First difference", facts),
        *score_table("Scores, recorded", divergence.recorded_scores, (recorded_decision.node, replayed_decision.node)),
        *score_table("Scores, replayed", divergence.replayed_scores, (replayed_decision.node, recorded_decision.node)),
    ]
