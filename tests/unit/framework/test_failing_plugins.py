"""What a plugin does wrong is told with its name, wherever it does it, and never leaves the framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterExtensions
from podium.framework.contract.score import ScorePlugin
from podium.framework.contract.status import unschedulable
from podium.framework.cycle.schedule import DoesNotFit, Failed
from podium.framework.profile.runtime import SLOW_PLUGIN_S
from podium.lib.clock import ManualClock
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
    table_scorer,
)

BROKEN = raising(ValueError("broken"))
SNAPSHOT = cluster(3)
RAISING_WHILE_DECIDING: list[tuple[str, type[Any]]] = [
    ("PreFilter", pre_filter("Culprit", BROKEN)),
    ("Filter", node_filter("Culprit", BROKEN)),
    ("Filter", table_filter("Culprit", BROKEN, BROKEN)),
    ("Filter", table_filter("Culprit", lambda snapshot, rows: np.ones(len(rows), np.int64), BROKEN)),
    ("PreScore", pre_score("Culprit", BROKEN, ScorePlugin, score=lambda *_: 1)),
    ("Score", node_scorer("Culprit", BROKEN)),
    ("Score", table_scorer("Culprit", BROKEN)),
    ("ScoreExtensionNormalize", node_scorer("Culprit", lambda name: 1, normalize_scores=BROKEN)),
]


@pytest.mark.parametrize(("point", "culprit"), RAISING_WHILE_DECIDING)
def test_a_plugin_that_raises_fails_the_attempt_by_name_and_is_told_once(point: str, culprit: type[Any]) -> None:
    recorder = Recorder()
    # A scorer lets the nodes be scored at all where the culprit only looks at them before.
    decision = decide(framework(culprit, node_scorer("Bystander", lambda name: 1), observer=recorder), pod(), SNAPSHOT)
    assert isinstance(decision, Failed)
    assert '"Culprit"' in decision.status.message
    assert "broken" in decision.status.message
    assert recorder.failures == [("Culprit", point, "broken")]


def test_a_post_filter_that_raises_leaves_the_pod_unschedulable_with_its_name() -> None:
    recorder = Recorder()
    nowhere = node_filter("Nowhere", lambda name: unschedulable("no"))
    decision = decide(framework(nowhere, post_filter("Culprit", BROKEN), observer=recorder), pod(), SNAPSHOT)
    assert isinstance(decision, DoesNotFit)
    assert 'running PostFilter plugin "Culprit": ValueError: broken' in decision.error.message
    assert recorder.failures == [("Culprit", "PostFilter", "broken")]


@pytest.mark.parametrize(
    ("point", "culprit"), [("Reserve", reserve("Culprit", BROKEN)), ("Permit", permit("Culprit", BROKEN))]
)
def test_a_plugin_that_raises_after_a_node_was_chosen_is_told(point: str, culprit: type[Any]) -> None:
    recorder = Recorder()
    runtime = framework(culprit, observer=recorder)
    state = CycleState()
    status = runtime.run_reserve(state, pod(), "n0") or runtime.run_permit(state, pod(), "n0").status
    assert status is not None
    assert (status.plugin, status.message) == ("Culprit", f'running {point} plugin "Culprit": ValueError: broken')
    assert recorder.failures == [("Culprit", point, "broken")]


def test_an_unreserve_that_raises_does_not_stop_the_others() -> None:
    recorder, undone = Recorder(), []
    other_plugins = [reserve(name, lambda: None, lambda name=name: undone.append(name)) for name in ("First", "Last")]
    runtime = framework(other_plugins[0], reserve("Culprit", lambda: None, BROKEN), other_plugins[1], observer=recorder)
    runtime.run_unreserve(CycleState(), pod(), "n0")
    assert undone == ["Last", "First"]
    assert recorder.failures == [("Culprit", "Unreserve", "broken")]


class BrokenExtensions(PreFilterExtensions):
    add_pod = remove_pod = BROKEN


def test_extensions_that_raise_are_told_by_what_they_were_asked() -> None:
    recorder = Recorder()
    culprit = pre_filter(
        "Culprit", lambda: (None, None), FilterPlugin, extensions=BrokenExtensions(), filter=lambda *_: None
    )
    runtime = framework(culprit, observer=recorder)
    for run in (runtime.run_add_pod, runtime.run_remove_pod):
        with pytest.raises(Exception, match='PreFilter plugin "Culprit": ValueError: broken'):
            run(CycleState(), pod(), pod("other"), SNAPSHOT.node(0))
    assert [point for _, point, _ in recorder.failures] == ["PreFilterExtensionAddPod", "PreFilterExtensionRemovePod"]


def slowly(clock: ManualClock, answer: Any) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        clock.advance(SLOW_PLUGIN_S * 2)
        return answer

    return call


def test_a_slow_plugin_is_told_with_its_seconds_and_its_neighbours_are_not() -> None:
    recorder, clock = Recorder(), ManualClock()
    quick = [node_filter("Quick", lambda name: None), node_scorer("Brisk", lambda name: 1)]
    slow = [
        pre_filter("SlowPreFilter", slowly(clock, (None, None)), FilterPlugin, filter=lambda *_: None),
        table_filter("SlowFilter", slowly(clock, None), BROKEN),
        pre_score("SlowPreScore", slowly(clock, None), ScorePlugin, score=lambda *_: 1),
        table_scorer("SlowScore", slowly(clock, np.ones(3, np.int64))),
        reserve("SlowReserve", slowly(clock, None)),
        permit("SlowPermit", slowly(clock, (None, 0.0))),
    ]
    runtime = framework(*slow, *quick, observer=recorder)
    runtime.clock = clock
    decide(runtime, pod(), SNAPSHOT)
    runtime.run_reserve(CycleState(), pod(), "n0")
    runtime.run_permit(CycleState(), pod(), "n0")
    assert [(plugin, point) for plugin, point, _ in recorder.slow] == [
        (f"Slow{point}", point) for point in ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit")
    ]
    assert [seconds for _, _, seconds in recorder.slow] == pytest.approx([SLOW_PLUGIN_S * 2] * 6)
    assert not recorder.failures
