from __future__ import annotations

import numpy as np
import pytest

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, TableFilterPlugin
from podium.framework.contract.score import ScorePlugin, TableScorePlugin
from podium.framework.contract.status import Code, Status, unschedulable
from podium.framework.profile.forms import (
    NodeFilter,
    NodeScorer,
    TableFilter,
    TableScorer,
    active,
    filter_form,
    score_form,
)
from tests.builders import pod
from tests.unit.framework.profiles import Built, cluster, node_filter, node_scorer, table_filter, table_scorer

STATE, POD = CycleState(), pod()


def number(name: str) -> int:
    return int(name.removeprefix("n"))


class BothFilters(Built, FilterPlugin, TableFilterPlugin):
    """Even nodes pass, those divisible by three say why, the others say nothing."""

    @staticmethod
    def judge(index: int) -> Status | None:
        if index % 2 == 0:
            return None
        return unschedulable("three") if index % 3 == 0 else Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def filter(self, state, pod, node):
        return self.judge(number(node.name))

    def filter_rows(self, state, pod, snapshot, rows):
        return np.where(rows % 2 == 0, 0, np.where(rows % 3 == 0, 1, 2))

    def explain(self, state, pod, verdict):
        return unschedulable("three") if verdict == 1 else Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class BothScorers(Built, ScorePlugin, TableScorePlugin):
    def score(self, state, pod, node):
        return number(node.name) * 7 % 101

    def score_rows(self, state, pod, snapshot, rows):
        return rows.astype(np.int64) * 7 % 101


def verdicts(form, rows):
    answer = form.filter(STATE, POD, cluster(20), rows)
    if answer is None:
        return [None] * len(rows)
    codes, explain = answer
    return [explain(int(verdict)) if verdict else None for verdict in codes]


@pytest.mark.parametrize("rows", [np.arange(20), np.array([7, 3, 4]), np.array([2, 4]), np.array([], np.intp)])
def test_node_form_judges_as_the_table_form_does(rows):
    plugin = BothFilters(None, None)
    by_table, by_node = verdicts(TableFilter(plugin), rows), verdicts(NodeFilter(plugin), rows)
    assert by_table == by_node
    assert all(status.plugin == "BothFilters" for status in by_node if status is not None)


@pytest.mark.parametrize("rows", [np.arange(20), np.array([7, 3, 4])])
def test_node_form_scores_as_the_table_form_does(rows):
    plugin = BothScorers(None, None)
    by_node = NodeScorer(plugin).score(STATE, POD, cluster(20), rows)
    assert by_node.tolist() == TableScorer(plugin).score(STATE, POD, cluster(20), rows).tolist()
    assert by_node.dtype == np.int64


def test_node_form_tells_statuses_apart_by_code_and_reasons():
    answers = [unschedulable("a"), unschedulable("b"), Status(Code.PENDING, ("a",)), unschedulable("a"), None]
    form = NodeFilter(node_filter("F", lambda name: answers[number(name)])(None, None))
    codes, _ = form.filter(STATE, POD, cluster(20), np.arange(5))
    assert codes[0] == verdicts[3]
    assert len(set(codes.tolist())) == 4
    assert verdicts(form, np.arange(5)) == [None if answer is None else answer.by("F") for answer in answers]


def test_status_of_success_passes_in_node_form():
    form = NodeFilter(node_filter("F", lambda name: Status(Code.SUCCESS))(None, None))
    assert form.filter(STATE, POD, cluster(20), np.arange(3)) is None


def test_table_form_may_say_that_all_pass():
    form = TableFilter(table_filter("F", lambda snapshot, rows: None, unschedulable)(None, None))
    assert form.filter(STATE, POD, cluster(20), np.arange(3)) is None


def test_table_form_is_taken_where_there_are_both():
    assert isinstance(filter_form(BothFilters(None, None)), TableFilter)
    assert isinstance(score_form(BothScorers(None, None)), TableScorer)
    assert isinstance(filter_form(node_filter("F", lambda name: None)(None, None)), NodeFilter)
    assert isinstance(score_form(node_scorer("S", number)(None, None)), NodeScorer)
    assert isinstance(score_form(table_scorer("S", lambda rows: rows)(None, None)), TableScorer)
    assert filter_form(BothScorers(None, None)) is None
    assert score_form(BothFilters(None, None)) is None


def test_skipped_filters_are_not_active():
    first, second = (NodeFilter(node_filter(name, lambda name: None)(None, None)) for name in "AB")
    state = CycleState()
    assert active([first, second], state) == [first, second]
    state.skipped_filters = frozenset({"A"})
    assert active([first, second], state) == [second]
