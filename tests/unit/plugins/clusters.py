"""Builders for clusters of a few nodes, and the handle that plugins get in tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.pod_groups import PodGroupState, PodGroupStates
from podium.config import NEWEST, PodGroupRules, Release
from podium.engine.offline import NoWaitingPods
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, TableFilterPlugin
from podium.framework.contract.score import ScorePlugin, TableScorePlugin
from podium.framework.contract.status import Status
from podium.lib.clock import Clock, ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType

STATE = CycleState()


class NoClient:
    """For plugins that do not talk to the API server."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise AssertionError("nothing binds here")


@dataclass
class GroupsOfPods:
    """The groups of these pods. `activated` are the keys of the pods that a plugin has activated."""

    pods: Iterable[Pod] = ()
    rules: PodGroupRules = field(default_factory=PodGroupRules)
    states: PodGroupStates = field(default_factory=PodGroupStates)
    activated: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for pod in self.pods:
            (self.states.put_assigned if pod.node_name else self.states.put_waiting)(pod)

    def state(self, key: str) -> PodGroupState | None:
        return self.states.get(key)

    def scheduled(self) -> Iterable[Pod]:
        return self.states.scheduled()

    def activate(self, pods: Iterable[Pod]) -> None:
        self.activated += [pod.key for pod in pods]


@dataclass
class RecordingHandle:
    """A handle whose cluster stands still."""

    current: Snapshot = field(default_factory=Snapshot)
    client: Any = field(default_factory=NoClient)
    random: Random = field(default_factory=lambda: Random(1))

    clock: Clock = field(default_factory=ManualClock)
    objects: Mapping[ResourceType[Any], Iterable[Any]] = field(default_factory=dict)
    preempting: set[str] = field(default_factory=set)
    held_back: set[str] = field(default_factory=set)
    spared: set[str] = field(default_factory=set)
    attempts: int = 0
    pod_groups: GroupsOfPods = field(default_factory=GroupsOfPods)
    waiting_pods: Any = field(default_factory=NoWaitingPods)
    shared_values: dict[Any, Any] = field(default_factory=dict)
    activated: list[str] = field(default_factory=list)
    activated_later: dict[str, float] = field(default_factory=dict)
    release: Release = NEWEST

    @property
    def preemptions(self) -> RecordingHandle:
        return self

    def attempted(self) -> None:
        self.attempts += 1

    def attempted_for_group(self, result: str) -> None:
        self.attempts += 1

    def begin_search(self, preemptor: str) -> Callable[[str], None]:
        return lambda _: None

    def is_preempting(self, uid: str) -> bool:
        return uid in self.preempting

    def held_back_from(self, pod: Pod) -> Collection[str]:
        return self.held_back

    def is_protected(self, victim: Pod) -> bool:
        return victim.spec.scheduler_name in self.spared

    def snapshot(self) -> Snapshot:
        return self.current

    def lister(self, resource: ResourceType[Any]) -> Listed:
        return Listed(self.objects.get(resource, ()))

    def activate(self, pods: Iterable[Pod], after_s: float = 0.0) -> None:
        keys = [pod.key for pod in pods]
        if after_s:
            self.activated_later.update(dict.fromkeys(keys, after_s))
        else:
            self.activated += keys

    def shared(self, make: Any) -> Any:
        if make not in self.shared_values:
            self.shared_values[make] = make(self)
        return self.shared_values[make]


class Listed:
    """Implements `podium.framework.contract.handle.Lister` over objects that do not change."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._objects = {item.key: item for item in objects}

    def get(self, key: str) -> Any:
        return self._objects.get(key)

    def list(self) -> Iterable[Any]:
        return self._objects.values()

    def in_namespace(self, namespace: str) -> Iterable[Any]:
        return [item for item in self._objects.values() if item.metadata.namespace == namespace]


def filter_nodes(plugin: TableFilterPlugin, pod: Pod, snapshot: Snapshot) -> dict[str, Status]:
    """Return the statuses of the nodes that the table form rejects."""
    verdicts = plugin.filter_rows(STATE, pod, snapshot, snapshot.order)
    if verdicts is None:
        return {}
    assert verdicts.dtype == np.int64
    assert len(verdicts) == len(snapshot.order)
    return {
        snapshot.name(row): plugin.explain(STATE, pod, int(verdict))
        for row, verdict in zip(snapshot.order, verdicts, strict=True)
        if verdict
    }


def filtered_one_by_one(
    plugin: FilterPlugin, pod: Pod, snapshot: Snapshot, state: CycleState = STATE
) -> dict[str, Status]:
    """Return the statuses of the nodes that the node form rejects."""
    answers = {snapshot.name(row): plugin.filter(state, pod, snapshot.node(row)) for row in snapshot.order}
    return {name: status for name, status in answers.items() if status is not None}


def score_nodes(plugin: TableScorePlugin, pod: Pod, snapshot: Snapshot, rows: Rows | None = None) -> dict[str, int]:
    """The table form's scores, not normalised."""
    rows = snapshot.order if rows is None else rows
    scores = plugin.score_rows(STATE, pod, snapshot, rows)
    assert scores.dtype == np.int64
    return {snapshot.name(row): int(score) for row, score in zip(rows, scores, strict=True)}


def normalize(
    plugin: TableScorePlugin, pod: Pod, snapshot: Snapshot, state: CycleState = STATE, rows: Rows | None = None
) -> dict[str, int]:
    """The table form's scores, normalised over all nodes, or over these rows."""
    rows = snapshot.order if rows is None else rows
    scores = plugin.normalize_scores(state, pod, plugin.score_rows(state, pod, snapshot, rows))
    return {snapshot.name(row): int(score) for row, score in zip(rows, scores, strict=True)}


def scored_one_by_one(plugin: ScorePlugin, pod: Pod, snapshot: Snapshot) -> dict[str, int]:
    """The node form's scores, not normalised."""
    return {snapshot.name(row): plugin.score(STATE, pod, snapshot.node(row)) for row in snapshot.order}
