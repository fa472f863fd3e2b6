"""The page of two recordings: where they part."""

from __future__ import annotations

from podium.cli.pages.diff import page_of
from podium.cli.pages.sections import Facts, Table
from podium.recording.comparison import Difference, RecordedDecision
from tests.unit.cli.pages.test_replay import RECORDED

NAMES = ("monday", "tuesday")


def test_page_of_equal_recordings_says_so() -> None:
    page = page_of(NAMES, None, ({}, {}), "monday: cut off")
    assert page.headline == "The decisions are the same."
    assert [section.title for section in page.sections] == ["Not all of it could be read"]


def test_both_sides_are_shown_with_their_scores() -> None:
    start = RecordedDecision(RECORDED, "the start")
    right = RecordedDecision(RECORDED._replace(node="n2"), "Node n2 was added or has changed")
    page = page_of(
        NAMES,
        Difference(4, (start, right)),
        ({"n1": {"Fit": 9}, "n2": {"Fit": 8}}, {"n1": {"Fit": 9}, "n2": {"Fit": 10}}),
    )
    assert page.headline == "The first difference is at attempt 4."
    start_facts, end_facts, *tables = page.sections
    assert isinstance(start_facts, Facts)
    assert isinstance(end_facts, Facts)
    assert end_facts.facts == {
        "decision": "pod default/web to node n2, of 3 feasible nodes",
        "after this": "Node n2 was added or has changed",
    }
    assert [table.rows[table.marked[0]][0] for table in tables if isinstance(table, Table)] == ["n1", "n2"]


def test_page_names_a_recording_that_has_ended() -> None:
    page = page_of(NAMES, Difference(4, (RecordedDecision(RECORDED, "the start"), None)), ({}, {}))
    facts = page.sections[1]
    assert isinstance(facts, Facts)
    assert facts.facts == {"decision": "the recording has ended"}
