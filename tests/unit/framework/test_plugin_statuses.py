"""What is measured of a plugin has the status that the plugin has answered, as upstream's has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin
from podium.framework.contract.score import ScorePlugin
from podium.framework.contract.status import SKIP, Code, Status, unresolvable, unschedulable
from podium.framework.profile.runtime import MEASURED_EVERY, Framework
from tests.builders import pod
from tests.unit.framework.profiles import (
    Recorder,
    cluster,
    decide,
    framework,
    node_filter,
    node_scorer,
    permit,
    post_filter,
    pre_filter,
    pre_score,
    raising,
    reserve,
    table_filter,
)

BROKEN = raising(ValueError("broken"))


def measure(*classes: type[Any], nodes: int = 4) -> tuple[Recorder, Framework]:
    """What is measured of one attempt with these plugins."""
    recorder = Recorder()
    profile = framework(*classes, observer=recorder)
    while not profile.begin_attempt():
        pass
    decide(profile, pod(), cluster(nodes))
    return recorder, profile


def statuses(recorder: Recorder, plugin: str = "A") -> list[tuple[str, str]]:
    return [(point, status) for name, point, status in recorder.measured if name == plugin]


@pytest.mark.parametrize(
    ("status", "label"),
    [
        (None, "Success"),
        (SKIP, "Skip"),
        (unschedulable("no"), "Unschedulable"),
        (unresolvable("no"), "UnschedulableAndUnresolvable"),
    ],
)
def test_pre_filter_has_the_status_of_its_answer(status: Status | None, label: str) -> None:
    plugin = pre_filter("A", lambda: (None, status), FilterPlugin, filter=lambda *_: None)
    recorder, _ = measure(plugin)
    assert statuses(recorder)[0] == ("PreFilter", label)


def test_a_filter_has_each_status_that_it_gave_a_node_with_that_share_of_its_time() -> None:
    answers = {"n0": unschedulable("no"), "n1": unschedulable("neither"), "n2": unresolvable("never")}
    recorder, profile = measure(node_filter("A", answers.get), nodes=8)
    assert statuses(recorder) == [
        ("Filter", "Success"),
        ("Filter", "Unschedulable"),
        ("Filter", "UnschedulableAndUnresolvable"),
    ]
    recorder.measured.clear()
    seconds: list[float] = []
    recorder.observe_plugin = lambda *report: seconds.append(report[-1])  # type: ignore[method-assign, assignment]
    profile.clock.advance(1.0)  # type: ignore[attr-defined]
    answers_slowly = table_filter("A", lambda snapshot, rows: np.arange(len(rows)) // 6, lambda _: unschedulable("no"))
    slow = framework(answers_slowly, observer=recorder)
    slow.measures_plugins = True
    real_filter = slow.filters[0].filter

    def filter_slowly(*args: Any) -> Any:
        slow.clock.advance(4.0)  # type: ignore[attr-defined]
        return real_filter(*args)

    slow.filters[0].filter = filter_slowly  # type: ignore[method-assign]
    decide(slow, pod(), cluster(8))
    assert seconds == [3.0, 1.0]


def test_a_filter_that_rejects_all_nodes_is_no_success() -> None:
    recorder, _ = measure(table_filter("A", lambda _, rows: np.ones(len(rows), np.int64), lambda _: unresolvable("no")))
    assert statuses(recorder) == [("Filter", "UnschedulableAndUnresolvable")]


@pytest.mark.parametrize(
    ("status", "label"),
    [(None, "Success"), (unschedulable("no"), "Unschedulable"), (unresolvable("no"), "UnschedulableAndUnresolvable")],
)
def test_post_filter_has_the_status_of_its_answer(status: Status | None, label: str) -> None:
    nowhere = node_filter("Nowhere", lambda name: unschedulable("no"))
    recorder, _ = measure(nowhere, post_filter("A", lambda _: (None, status)))
    assert statuses(recorder) == [("PostFilter", label)]


def test_pre_score_has_the_status_of_its_answer() -> None:
    recorder, _ = measure(pre_score("A", lambda: SKIP, ScorePlugin, score=lambda *_: 1), node_scorer("B", lambda _: 1))
    assert statuses(recorder) == [("PreScore", "Skip")]


def test_scoring_and_normalising_are_measured_apart_and_normalising_only_where_a_plugin_does_it() -> None:
    normalizes = node_scorer("A", lambda _: 1, normalize_scores=lambda self, state, pod, scores: scores)
    recorder, _ = measure(normalizes, node_scorer("B", lambda _: 1))
    assert statuses(recorder) == [("Score", "Success"), ("ScoreExtensionNormalize", "Success")]
    assert statuses(recorder, "B") == [("Score", "Success")]


@pytest.mark.parametrize(
    ("point", "culprit"),
    [
        ("PreFilter", pre_filter("A", BROKEN)),
        ("Filter", node_filter("A", BROKEN)),
        ("PreScore", pre_score("A", BROKEN, ScorePlugin, score=lambda *_: 1)),
        ("Score", node_scorer("A", BROKEN)),
    ],
)
def test_a_plugin_that_raises_is_an_error_and_so_is_its_extension_point(point: str, culprit: type[Any]) -> None:
    recorder, _ = measure(culprit, node_scorer("B", lambda _: 1))
    assert statuses(recorder) == [(point, "Error")]
    assert (point, "Error") in recorder.points


def test_normalising_that_raises_is_an_error_after_a_score() -> None:
    recorder, _ = measure(node_scorer("A", lambda _: 1, normalize_scores=BROKEN))
    assert statuses(recorder) == [("Score", "Success"), ("ScoreExtensionNormalize", "Error")]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ((None, 0.0), "Success"),
        ((Status(Code.WAIT), 1.0), "Wait"),
        ((unschedulable("no"), 0.0), "Unschedulable"),
        ((Status(Code.PENDING, ("not yet",)), 0.0), "Pending"),
    ],
)
def test_permit_has_the_status_of_its_answer(answer: tuple[Status | None, float], label: str) -> None:
    recorder, profile = measure(permit("A", lambda: answer))
    profile.run_permit(CycleState(), pod(), "n0")
    assert statuses(recorder) == [("Permit", label)]


def test_reserve_has_the_status_of_its_answer() -> None:
    recorder, profile = measure(reserve("A", lambda: unschedulable("no")))
    profile.run_reserve(CycleState(), pod(), "n0")
    assert statuses(recorder) == [("Reserve", "Unschedulable")]


def test_an_attempt_that_is_not_measured_reports_no_plugin() -> None:
    recorder = Recorder()
    profile = framework(node_filter("A", lambda name: None), node_scorer("B", lambda _: 1), observer=recorder)
    for _ in range(MEASURED_EVERY - 1):
        profile.begin_attempt()
        decide(profile, pod(), cluster(4))
    assert recorder.measured == []
