"""The page of `podium replay`: the recorded day, and the first decision that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cli.pages.decisions import score_table, told
from podium.cli.pages.over_time import sections_of
from podium.cli.pages.sections import Facts, Page, Section
from podium.recording.timeline import Timeline

if TYPE_CHECKING:
    from podium.recording.counterfactual import Counterfactual
    from podium.recording.divergence import Divergence
    from podium.recording.replay import ReplayResult


def page_of(name: str, replayed: ReplayResult, timeline: Timeline) -> Page:
    """What it shows.

    Args:
        name: of the recording.
    """
    differing = replayed.outcome.divergence
    headline = "Every decision is the recorded one."
    if differing is not None:
        headline = f"The first difference is at attempt {replayed.outcome.attempts}, after this: {differing.event}."
    outcome = replayed.outcome
    facts = {
        "attempts": str(outcome.attempts),
        "recorded time": f"{replayed.virtual_s:.1f} s",
        "replayed in": f"{replayed.wall_s:.1f} s",
        "digest": outcome.digest.hexdigest(),
        "recorded digest": outcome.recorded_digest.hexdigest(),
    }
    if replayed.damage:
        facts["not read to its end"] = replayed.damage
    sections = [Facts("Replay", facts), *([] if differing is None else _difference(differing)), *sections_of(timeline)]
    return Page(f"Replay of {name}", headline, sections, timeline.times_s, timeline.started_s)


def counterfactual_page(name: str, found: Counterfactual, timeline: Timeline) -> Page:
    """What it shows of a replay that went on to the end with another configuration.

    Args:
        name: of the recording.
    """
    numbers = found.outcomes.as_value()
    facts = {of.replace("_", " "): "-" if value is None else str(value) for of, value in numbers.items()}
    if found.damage:
        facts["not read to its end"] = found.damage
    headline = (
        f"{found.outcomes.placed} pods would have been placed, and {found.outcomes.pending} would wait at the end."
    )
    sections = [Facts("What it comes to", facts), *sections_of(timeline)]
    return Page(f"Counterfactual replay of {name}", headline, sections, timeline.times_s, timeline.started_s)


def _difference(differing: Divergence) -> list[Section]:
    facts = {"after this": differing.event}
    if differing.recorded is None or differing.replayed is None:
        return [Facts("First difference", {**facts, "what differs": differing.detail})]
    recorded, replayed = differing.recorded, differing.replayed
    facts |= {"recorded": told(recorded), "replayed": told(replayed)}
    return [
        Facts("First difference", facts),
        *score_table("Scores, recorded", differing.recorded_scores, (recorded.node, replayed.node)),
        *score_table("Scores, replayed", differing.replayed_scores, (replayed.node, recorded.node)),
    ]
