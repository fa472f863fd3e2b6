"""The page of a replay: the first difference with its scores, and the day."""

from __future__ import annotations

from podium.cli.pages.replay import counterfactual_page, page_of
from podium.cli.pages.sections import Facts, Table
from podium.recording.counterfactual import Counterfactual
from podium.recording.divergence import Divergence, ReplayOutcome
from podium.recording.entries import Decision
from podium.recording.outcomes import Outcomes
from podium.recording.replay import ReplayResult
from tests.unit.cli.pages.test_over_time import TIMELINE

RECORDED = Decision("u", "default/web", "Suggested", "n1", 5, 3, 100, None, ())


def test_same_decisions_are_reported() -> None:
    page = page_of("monday", ReplayResult(ReplayOutcome(attempts=3, started_s=1.0, ended_s=5.0), 0.5), TIMELINE)
    assert page.headline == "Every decision is the recorded one."
    facts, *over_time = page.sections
    assert isinstance(facts, Facts)
    assert (facts.facts["attempts"], facts.facts["recorded time"]) == ("3", "4.0 s")
    assert [section.kind for section in over_time] == ["heat", "lines", "lines", "lines"]
    assert page.times_s == TIMELINE.times_s


def test_first_difference_has_both_tables_of_scores() -> None:
    differing = Divergence(7, "Pod default/web was added or has changed", "the decision differs", RECORDED)
    differing.replayed = RECORDED._replace(node="n2")
    differing.recorded_scores = {"n1": {"Fit": 90}, "n2": {"Fit": 80}}
    differing.replayed_scores = {"n1": {"Fit": 10}, "n2": {"Fit": 80}}
    page = page_of("monday", ReplayResult(ReplayOutcome(attempts=3, divergence=differing), 0.5, "cut off"), TIMELINE)
    assert page.headline.startswith("The first difference is at attempt 3, after this: Pod default/web was added")
    replay, facts, recorded_table, replayed_table = page.sections[:4]
    assert isinstance(replay, Facts)
    assert replay.facts["not read to its end"] == "cut off"
    assert isinstance(facts, Facts)
    assert facts.facts["replayed"] == "pod default/web to node n2, of 3 feasible nodes"
    assert isinstance(recorded_table, Table)
    assert isinstance(replayed_table, Table)
    assert (recorded_table.rows[recorded_table.marked[0]][0], replayed_table.rows[replayed_table.marked[0]][0]) == (
        "n1",
        "n2",
    )


def test_difference_that_is_no_decision_is_shown() -> None:
    outcome = ReplayOutcome(attempts=3, divergence=Divergence(7, "the start", "a reading was recorded"))
    facts = page_of("monday", ReplayResult(outcome, 0.5), TIMELINE).sections[1]
    assert isinstance(facts, Facts)
    assert facts.facts == {"after this": "the start", "what differs": "a reading was recorded"}


def test_counterfactual_replay_is_shown_to_its_end() -> None:
    numbers = Outcomes(9, 5, 1, 0.5, None, 0.4, 0.3, 0.2, 0.1, 0)
    page = counterfactual_page("monday", Counterfactual(numbers, {}, {}, 7.0, "cut off"), TIMELINE)
    assert page.headline == "5 pods would have been placed, and 1 would wait at the end."
    facts = page.sections[0]
    assert isinstance(facts, Facts)
    assert (facts.facts["bind s p50"], facts.facts["bind s p99"], facts.facts["pending"]) == ("0.5", "-", "1")
    assert facts.facts["not read to its end"] == "cut off"
    assert [section.kind for section in page.sections[1:]] == ["heat", "lines", "lines", "lines"]
