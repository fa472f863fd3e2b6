"""Profiles made of plugins that do what a test says, and clusters for them to run on."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from podium.cluster import Snapshot
from podium.config import NEWEST, Profile
from podium.config.types import Plugin as Enabled
from podium.config.types import Plugins, PluginSet
from podium.framework.contract.bind import BindPlugin, PermitPlugin, ReservePlugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin, TableFilterPlugin
from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.post_filter import PostFilterPlugin
from podium.framework.contract.score import PreScorePlugin, ScorePlugin, TableScorePlugin
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.nominated_pods import Nomination, RowsOfNominations
from podium.framework.cycle.schedule import Decision, schedule
from podium.framework.cycle.search import Rotation
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.queues import Nominator
from tests.builders import node, snapshot_of


@dataclass
class Recorder(Observer):
    """Remembers what the framework told it."""

    points: list[tuple[str, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    evaluations: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    slow: list[tuple[str, str, float]] = field(default_factory=list)
    measured: list[tuple[str, str, str]] = field(default_factory=list)

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        self.points.append((point, status))
        self.seconds.append(seconds)

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.measured.append((plugin, point, status))

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        self.evaluations[plugin, point] += times

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        self.failures.append((plugin, point, str(error)))

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        self.slow.append((plugin, point, seconds))


class Handle:
    """The plugins' handle: a clock that stands still and seeded randomness."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.random = Random(1)
        self.client: Any = None
        self.release = NEWEST

    def snapshot(self) -> Snapshot:
        raise AssertionError("nobody asks for it here")


class Built:
    """Keeps what every plugin is constructed with."""

    def __init__(self, args: Any, handle: Any) -> None:
        self.args, self.handle = args, handle


class Sort(Built, QueueSortPlugin):
    def less(self, a: Any, b: Any) -> bool:
        return bool(a.timestamp_s < b.timestamp_s)


class Bind(Built, BindPlugin):
    async def bind(self, state: Any, pod: Any, node_name: str) -> None:
        return None


def _plugin_class(name: str, base: type, **methods: Any) -> type[Any]:
    return type(name, (Built, base), methods)


def node_filter(name: str, judge: Callable[[str], Any], **methods: Any) -> type[Any]:
    """A filter in node form: `judge` answers by node name."""
    return _plugin_class(name, FilterPlugin, filter=lambda self, state, pod, node: judge(node.name), **methods)


def table_filter(name: str, verdicts: Callable[[Snapshot, Any], Any], explain: Callable[[int], Any]) -> type[Any]:
    """A filter in table form."""
    return _plugin_class(
        name,
        TableFilterPlugin,
        filter_rows=lambda self, state, pod, snapshot, rows: verdicts(snapshot, rows),
        explain=lambda self, state, pod, verdict: explain(verdict),
    )


def pre_filter(name: str, answer: Callable[[], Any], *bases: type, extensions: Any = None, **methods: Any) -> type[Any]:
    """A PreFilter, and whatever else the further bases and methods make of it."""
    methods["pre_filter"] = lambda self, state, pod, snapshot: answer()
    methods["pre_filter_extensions"] = lambda self: extensions
    return type(name, (Built, PreFilterPlugin, *bases), methods)


def post_filter(name: str, answer: Callable[[Any], Any]) -> type[Any]:
    return _plugin_class(
        name, PostFilterPlugin, post_filter=lambda self, state, pod, snapshot, nodes_filtered: answer(nodes_filtered)
    )


def node_scorer(name: str, score: Callable[[str], Any], **methods: Any) -> type[Any]:
    return _plugin_class(name, ScorePlugin, score=lambda self, state, pod, node: score(node.name), **methods)


def table_scorer(name: str, scores: Callable[[Any], Any], **methods: Any) -> type[Any]:
    return _plugin_class(
        name, TableScorePlugin, score_rows=lambda self, state, pod, snapshot, rows: scores(rows), **methods
    )


def pre_score(name: str, answer: Callable[[], Any], *bases: type, **methods: Any) -> type[Any]:
    methods["pre_score"] = lambda self, state, pod, snapshot, rows: answer()
    return type(name, (Built, PreScorePlugin, *bases), methods)


def reserve(name: str, answer: Callable[[], Any], undo: Callable[[], Any] = lambda: None) -> type[Any]:
    return _plugin_class(
        name,
        ReservePlugin,
        reserve=lambda self, state, pod, node_name: answer(),
        unreserve=lambda self, state, pod, node_name: undo(),
    )


def permit(name: str, answer: Callable[[], Any]) -> type[Any]:
    return _plugin_class(name, PermitPlugin, permit=lambda self, state, pod, node_name: answer())


def raising(error: Exception) -> Callable[..., Any]:
    """A function that fails."""

    def fail(*_: Any) -> Any:
        raise error

    return fail


def framework(
    *classes: type[Any],
    weights: Mapping[str, int] | None = None,
    percentage: int | None = None,
    observer: Recorder | None = None,
) -> Framework:
    """A profile of these plugins in this order."""
    every = (Sort, Bind, *classes)
    plugin_set = PluginSet(tuple(Enabled(plugin.name, (weights or {}).get(plugin.name, 0)) for plugin in every))
    profile = Profile("podium", percentage, Plugins(multi_point=plugin_set))
    return Framework(profile, {plugin.name: plugin for plugin in every}, Handle(), observer or Recorder())


@functools.cache
def cluster(count: int) -> Snapshot:
    """Nodes n0, n1 …, in this order; not to be changed."""
    return snapshot_of(*(node(f"n{index}") for index in range(count)))


class Nominated:
    """Pods by the node they are nominated to, all of them ahead of whoever asks."""

    def __init__(self, pods: Mapping[str, Sequence[Pod]]) -> None:
        self._pods = pods

    def ahead_by_row(self, pod: Pod, snapshot: Snapshot) -> RowsOfNominations:
        nominations = [Nomination.of(pod, name) for name, pods in self._pods.items() for pod in pods]
        return RowsOfNominations.of(nominations, snapshot)

    def ahead_on(self, pod: Pod, node_name: str) -> Sequence[Pod]:
        return self._pods.get(node_name, ())


def decide(
    profile: Framework,
    pod: Pod,
    snapshot: Snapshot,
    nominator: Any = None,
    rotation: Rotation | None = None,
    percentage: int = 0,
    state: CycleState | None = None,
) -> Decision:
    """One attempt."""
    cycle = Cycle(profile, pod, snapshot, nominator or Nominator({}.get), state or CycleState())
    return schedule(cycle, rotation or Rotation(), percentage)


def statuses(diagnosis: Diagnosis, snapshot: Snapshot) -> dict[str, str]:
    """`Plugin: message` by the name of the rejected node."""
    return {snapshot.name(row): f"{status.plugin}: {status.message}" for row, status in diagnosis.statuses().items()}


def passing(rows: Any) -> Any:
    """Verdicts with which every row passes."""
    return np.zeros(len(rows), np.int64)
