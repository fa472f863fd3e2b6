from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework.contract.score import ScorePlugin
from podium.framework.contract.status import SKIP, error_status, unschedulable
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.scoring import NearBest, choose, score_nodes
from podium.framework.cycle.search import ScheduleError
from podium.queues import Nominator
from tests.builders import pod
from tests.unit.framework.profiles import (
    Recorder,
    cluster,
    framework,
    node_scorer,
    pre_score,
    raising,
    table_scorer,
)


def score_rows(*plugins, weights=None, rows=(0, 1, 2), observer=None):
    profile = framework(*plugins, weights=weights, observer=observer)
    return score_nodes(Cycle(profile, pod(), cluster(4), Nominator({}.get)), np.array(rows))


def by_row(rows):
    return rows.astype(np.int64) * 10


def test_totals_are_sums_of_weighted_scores():
    scores = score_rows(
        table_scorer("Table", by_row), node_scorer("Node", lambda name: int(name[1:])), weights={"Node": 3}
    )
    assert scores.total.tolist() == [0, 13, 26]
    assert {name: values.tolist() for name, values in scores.plugins.items()} == {
        "Table": [0, 10, 20],
        "Node": [0, 3, 6],
    }


def test_normalised_scores_count():
    halved = table_scorer("S", by_row, normalize_scores=lambda self, state, pod, scores: scores // 2)
    assert score_rows(halved, weights={"S": 2}).total.tolist() == [0, 10, 20]


def test_without_scorers_all_nodes_are_equal():
    assert score_rows().total.tolist() == [1, 1, 1]


def test_pre_score_that_skips_leaves_out_the_plugins_own_score():
    recorder = Recorder()
    skipping = pre_score("A", lambda: SKIP, ScorePlugin, score=raising(AssertionError("not asked")))
    scores = score_rows(skipping, table_scorer("B", by_row), observer=recorder)
    assert scores.total.tolist() == [0, 10, 20]
    assert set(scores.plugins) == {"B"}
    assert recorder.points == [("PreScore", "Success"), ("Score", "Success")]
    assert recorder.evaluations == {("A", "PreScore"): 1, ("B", "Score"): 3}


def test_all_scorers_skipped_leaves_zero():
    assert score_rows(pre_score("A", lambda: SKIP, ScorePlugin, score=lambda *_: 1)).total.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (raising(OSError("broken")), "OSError: broken"),
        (lambda: error_status("broken"), "broken"),
        (lambda: unschedulable("broken"), "broken"),
    ],
)
def test_failing_pre_score_is_an_error_that_names_it(answer, words):
    with pytest.raises(ScheduleError) as failure:
        score_rows(pre_score("Bad", answer), table_scorer("S", by_row))
    assert str(failure.value) == f'running PreScore plugin "Bad": {words}'


@pytest.mark.parametrize(
    "plugin", [node_scorer("Bad", raising(OSError("broken"))), table_scorer("Bad", raising(OSError("broken")))]
)
def test_failing_score_is_an_error_that_names_it(plugin):
    with pytest.raises(ScheduleError) as failure:
        score_rows(plugin)
    assert str(failure.value) == 'running Score plugins: plugin "Bad" failed with: OSError: broken'


def test_failing_normalisation_is_an_error_that_names_it():
    bad = node_scorer("Bad", lambda name: 1, normalize_scores=raising(OSError("broken")))
    with pytest.raises(ScheduleError) as failure:
        score_rows(bad)
    assert str(failure.value) == 'running Normalize on Score plugins: plugin "Bad" failed with: OSError: broken'


@pytest.mark.parametrize(
    "answer",
    [
        lambda rows: np.array([1, 2]),
        lambda rows: np.array([1.0, 2.0, 3.0]),
        lambda rows: [1, 2, "x"],
        lambda rows: None,
        lambda rows: 7,
    ],
)
def test_scores_that_are_not_one_integer_for_each_node_are_an_error(answer):
    with pytest.raises(ScheduleError, match=r'plugin "Bad" failed with: .*one integer for each of the 3 nodes'):
        score_rows(table_scorer("Bad", answer))
    with pytest.raises(ScheduleError, match=r'plugin "Bad" failed with: .*one integer for each of the 3 nodes'):
        score_rows(table_scorer("Bad", by_row, normalize_scores=lambda self, state, pod, scores: answer(np.arange(3))))


@pytest.mark.parametrize("score", [1.5, None, "7", 2**70])
def test_score_of_one_node_that_is_no_integer_is_an_error(score):
    with pytest.raises(ScheduleError, match='running Score plugins: plugin "Bad" failed with: '):
        score_rows(node_scorer("Bad", lambda name: score))


@pytest.mark.parametrize("score", [-1, 101])
def test_score_out_of_range_is_an_error_that_names_the_plugin_and_the_score(score):
    with pytest.raises(ScheduleError) as failure:
        score_rows(node_scorer("Bad", lambda name: score if name == "n1" else 50))
    assert str(failure.value) == (
        f'applying score defaultWeights on Score plugins: plugin "Bad" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    )


def test_borders_of_the_range_are_in_it():
    assert score_rows(node_scorer("S", lambda name: 100 if name == "n1" else 0)).total.tolist() == [0, 100, 0]


# ---------------------------------------------------------------- the choice


def root_of_heap(totals: list[int]) -> int:
    """The position whose entry ends at the root when Go's container/heap makes a max-heap of the list."""
    heap = list(range(len(totals)))
    for start in reversed(range(len(heap) // 2)):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            right = child + 1
            if right < len(heap) and totals[heap[right]] > totals[heap[child]]:
                child = right
            if totals[heap[child]] <= totals[heap[parent]]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=300))
def test_choice_among_many_ties_is_the_root_of_the_heap(totals):
    assert choose(np.array(totals)) == root_of_heap(totals)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=50))
def test_choice_among_any_totals_is_the_root_of_the_heap(totals):
    assert choose(np.array(totals)) == root_of_heap(totals)


def test_choice_beyond_the_table_it_starts_with():
    totals = [0] * 3000
    totals[2047] = totals[2999] = totals[1500] = 1
    assert choose(np.array(totals)) == root_of_heap(totals)


def test_first_of_all_equal_nodes_wins():
    assert choose(np.array([7, 7, 7, 7])) == 0


# ---------------------------------------------------------------- nearly the best


def test_each_node_within_the_margin_of_the_best_has_its_turn_and_no_other():
    total = np.array([80, 100, 90, 89, 95])
    pick = NearBest(Random(1), 10)
    assert {pick(total) for _ in range(100)} == {1, 2, 4}


def test_without_a_margin_only_the_best_are_taken():
    pick = NearBest(Random(1), 0)
    assert {pick(np.array([5, 7, 7])) for _ in range(100)} == {1, 2}
