from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from podium.daemon.running_plugin import RunningPlugin, running_plugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterExtensions
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.score import ScorePlugin
from podium.framework.contract.status import unschedulable
from tests.builders import pod
from tests.builders import pod as queued
from tests.unit.framework.profiles import (
    Built,
    Nominated,
    cluster,
    decide,
    framework,
    node_filter,
    pre_filter,
    reserve,
)
from tests.unit.queues.builders import QueueBench, WithoutArgs


class Looks:
    """Looks at the stack from inside of a plugin."""

    def __init__(self) -> None:
        self.seen: list[RunningPlugin] = []

    def __call__(self, *_: Any) -> None:
        frame = inspect.currentframe()
        assert isinstance(frame, FrameType)
        self.seen.append(running_plugin(frame))

    @property
    def names(self) -> set[tuple[str, str, str]]:
        return {(call.plugin, call.extension_point, call.pod) for call in self.seen}


class Inner(Built, FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> None:
        self.args()


class Outer(Built, FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> None:
        Inner(self.args, None).filter(state, pod, node)


def looking(plugin: type[Any], look: Looks) -> type[Any]:
    """The plugin, with what it is to look with."""
    return type("Culprit", (plugin,), {"__init__": lambda self, args, handle: plugin.__init__(self, look, handle)})


def test_a_filter_is_named_with_its_pod_and_the_stack_ends_in_it() -> None:
    look = Looks()
    decide(framework(looking(Inner, look)), pod("web"), cluster(2))
    assert look.names == {("Culprit", "Filter", "default/web")}
    assert "__call__" in look.seen[0].stack[-1]
    assert any("test_running_plugin.py" in line for line in look.seen[0].stack)


def test_of_plugins_that_call_each_other_the_one_is_named_that_podium_called() -> None:
    look = Looks()
    decide(framework(looking(Outer, look)), pod("web"), cluster(1))
    assert look.names == {("Culprit", "Filter", "default/web")}


class Extensions(PreFilterExtensions):
    def __init__(self, look: Callable[[], Any]) -> None:
        self._look = look

    def add_pod(self, *_: Any) -> None:
        self._look()

    def remove_pod(self, *_: Any) -> None:
        self._look()


def test_what_a_plugin_has_handed_over_is_named_after_it() -> None:
    look = Looks()
    culprit = pre_filter("Culprit", lambda: (None, None), extensions=Extensions(look))
    other_filter = node_filter("No", lambda name: None)
    decide(framework(culprit, other_filter), pod("web"), cluster(2), Nominated({"n1": [pod("v")]}))
    assert look.names == {("Culprit", "PreFilterExtensionAddPod", "default/web")}


def test_reserve_is_named() -> None:
    look = Looks()
    framework(reserve("Culprit", look)).run_reserve(CycleState(), pod("web"), "n1")
    assert look.names == {("Culprit", "Reserve", "default/web")}


class Scores(Built, ScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        self.args()
        return 1


def test_a_scorer_is_named() -> None:
    look = Looks()
    decide(framework(looking(Scores, look)), pod("web"), cluster(2))
    assert look.names == {("Culprit", "Score", "default/web")}


def test_where_no_plugin_is_at_work_there_is_a_stack_alone() -> None:
    look = Looks()
    look()
    assert look.names == {("", "", "")}
    assert look.seen[0].stack


def test_the_gate_is_named() -> None:
    look = Looks()

    def pre_enqueue(self: Any, pod: Any) -> Any:
        look()
        return unschedulable("no")

    gate = type("Culprit", (WithoutArgs, PreEnqueuePlugin), {"pre_enqueue": pre_enqueue})()
    bench = QueueBench(gate)
    bench.add(queued("web"))
    assert look.names == {("Culprit", "PreEnqueue", "default/web")}


def test_args_that_check_themselves_are_named_as_the_constructor_is() -> None:
    look = Looks()

    @dataclass
    class Args:
        label: str = ""

        def __post_init__(self) -> None:
            look()

    culprit = type("Culprit", (Built, FilterPlugin), {"Args": Args, "filter": lambda *_: None})
    framework(culprit)
    assert look.names == {("Culprit", "Constructor", "")}
