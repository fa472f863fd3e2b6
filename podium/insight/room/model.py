"""A cluster in columns, as the search for moves sees it: what each node has free, and what each pod takes and needs.

The columns know amounts, and for each pod the nodes that no filter rejects for any other reason than what other pods
take. Rules between pods (affinity, volumes that move) are left out where they only forbid more: so whatever the search
rules out is impossible, and what it proposes has to be rehearsed. Topology spread is counted anew after moves.

Shape: one row per node of the snapshot, one column per resource; the first column counts pods.
Units: as the snapshot: thousandths of cpu, bytes, counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from msgspec.structs import replace as replace_fields

from podium.cluster import Snapshot, host_ports
from podium.cluster.affinity_terms import pod_terms
from podium.cluster.snapshot import BoolArray, IntArray
from podium.engine.cluster import Cluster
from podium.engine.cluster_objects import unbound
from podium.engine.device_refusals import DEVICES
from podium.framework.preemption.candidates import Budgets
from podium.insight.blockers import Blockers, blockers_of
from podium.insight.evictions import Evictions
from podium.insight.room.devices import NO_NEEDS, DeviceColumns
from podium.insight.room.movable import Movability
from podium.insight.room.spreading import GONE, SPREAD, Move, Spread
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.requests import filter_requests
from podium.objects.resource_names import EPHEMERAL_STORAGE, MEMORY
from podium.objects.resource_types import NAMESPACES
from podium.objects.selectors import Selector
from podium.plugins.pod_topology_spread import PodTopologySpread

Cost: TypeAlias = tuple[int, int, int]
"""The bytes, the priorities and the restarts of a move, compared in this order. See `cost_of`."""

FIT: Final = "NodeResourcesFit"
_BETWEEN_PODS: Final = frozenset({"NodePorts", "InterPodAffinity"})
"""Filters that may pass once a pod of the node is gone."""
_OF_NODES: Final = frozenset(
    {
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "VolumeBinding",
        "VolumeZone",
        "PodLimits",
    }
)
"""Filters whose verdict on a node no move changes."""


@dataclass(frozen=True, slots=True, eq=False)
class MovablePod:
    """A pod that may be moved.

    Attributes:
        row: the row of its node.
        gain: what its node has free once it is gone.
        need: what another node must have free.
        kind: equal for pods that may go to the same nodes.
        size: the largest share of a resource of an average node that it needs.
    """

    pod: Pod
    row: int
    gain: tuple[int, ...]
    need: tuple[int, ...]
    kind: int
    size: float
    cost: Cost


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A pod that is to get a node.

    Attributes:
        rows: the rows on which only room is missing.
        conflicts: by row, the movable pods that have to go whatever is free, by their index: those of the node, or
            those of a topology domain from which anti-affinity keeps the pod.
        apart: by movable pod that anti-affinity keeps apart from this one, the labels that they must not share.
        spread: its topology spread; None if `rows` is what that allows now.
    """

    pod: Pod
    need: tuple[int, ...]
    rows: BoolArray
    size: float
    conflicts: Mapping[int, tuple[int, ...]]
    apart: Mapping[int, frozenset[str]]
    spread: Spread | None = None


class RoomModel:
    """The nodes and pods of a cluster in which pods are waiting for room.

    Args:
        cluster: the cluster without the pods in question.
        pods: the pods in question, as they are tried.

    Attributes:
        is_exact: whether nothing was left out for a reason that a move might change; then what the columns rule out is
            impossible.
    """

    def __init__(self, cluster: Cluster, movability: Movability, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._engine = cluster.engine_to_ask
        self.snapshot: Snapshot = self._engine.cache.snapshot()
        self.movability = movability
        self.count = len(self.snapshot.nodes)
        self.is_exact = True
        movable_pods = [
            (row, pod)
            for row in self.snapshot.order.tolist()
            for pod in self.snapshot.pods[row].values()
            if not movability.obstacle(pod)
        ]
        replacements = [as_replacement(pod) for _, pod in movable_pods if pod.spec.resource_claims]
        self.devices = DeviceColumns(cluster, self.snapshot, [*replacements, *pods])
        self.resources = self._resources_of([*(pod for _, pod in movable_pods), *pods])
        self.free = self._free()
        self._kinds: dict[tuple[object, ...], int] = {}
        self._rows_of_kind: list[BoolArray | None] = []
        self._samples: list[Pod] = []
        self._movable_rows = [(pod, row) for row, pod in movable_pods]
        self.movable = [self._movable(row, pod) for row, pod in movable_pods]
        self.on_row: list[list[int]] = [[] for _ in range(self.count)]
        for index, candidate in enumerate(self.movable):
            self.on_row[candidate.row].append(index)
        self._top: dict[int, IntArray] = {}
        self._spread_of_kind = [self._spread(as_replacement(sample)) for sample in self._samples]
        self._labels_counted: dict[int, tuple[bool, ...]] = {}
        # Pods in question that count each other would change the skew as they come, in an order that nobody knows.
        self._moves_mend_skew = len(pods) == 1
        self.requests = [self.request(pod) for pod in pods]

    @property
    def names(self) -> Sequence[str]:
        """The nodes' names by row; "" for rows without a node."""
        return ["" if node is None else node.name for node in self.snapshot.nodes]

    # ------------------------------------------------------------ columns

    def _resources_of(self, pods: Iterable[Pod]) -> Sequence[str]:
        specs = {id(pod.spec): pod.spec for pod in pods}
        names = {name: None for spec in specs.values() for name, amount in filter_requests(spec).items() if amount}
        return list(names)

    def _free(self) -> IntArray:
        snapshot = self.snapshot
        columns = [snapshot.allowed_pods - snapshot.pod_count]
        columns += [snapshot.allocatable(name) - snapshot.requested(name) for name in self.resources]
        return np.hstack([np.stack(columns, axis=1).astype(np.int64), np.array(self.devices.free, np.int64)])

    @cached_property
    def _average(self) -> Sequence[float]:
        rows = self.snapshot.order
        columns = [self.snapshot.allowed_pods, *(self.snapshot.allocatable(name) for name in self.resources)]
        device_columns = np.array(self.devices.free, np.int64).T
        return [max(float(column[rows].mean()), 1.0) for column in (*columns, *device_columns)]

    def need_of(self, pod: Pod) -> tuple[int, ...]:
        """Return what must be free on a node for the pod, in the order of the columns."""
        requests = filter_requests(pod.spec)
        devices = self.devices.amounts(self.devices.needs_of(pod) or NO_NEEDS)
        return 1, *(requests.get(name, 0) for name in self.resources), *devices

    def size(self, need: Sequence[int]) -> float:
        """Return the largest share of a resource of an average node that these amounts are."""
        return (
            max(amount / average for amount, average in zip(need[1:], self._average[1:], strict=True))
            if need[1:]
            else 0.0
        )

    def _movable(self, row: int, pod: Pod) -> MovablePod:
        usage = self.snapshot.pod_usage(row, pod)
        need = self.need_of(as_replacement(pod) if pod.spec.resource_claims else pod)
        gain = (1, *(usage.requests.get(name, 0) for name in self.resources), *self.devices.gain_of(pod))
        return MovablePod(pod, row, gain, need, self._kind_of(pod), self.size(need), cost_of(pod))

    def fits(self, need: Sequence[int] | IntArray, free: IntArray) -> BoolArray:
        """Return which rows have that much free. A resource that is not requested may be overcommitted."""
        amounts = np.asarray(need, np.int64)
        return np.asarray(((free >= amounts) | (amounts == 0)).all(axis=1))

    def top_gains(self, count: int) -> IntArray:
        """Return by row and column the most that `count` moved pods may free. Shape: as `free`."""
        if count not in self._top:
            top = np.zeros_like(self.free)
            for row, indexes in enumerate(self.on_row):
                if indexes:
                    gains = np.array([self.movable[index].gain for index in indexes], np.int64)
                    top[row] = -np.sort(-gains, axis=0)[:count].sum(axis=0)
            self._top[count] = top
        return self._top[count]

    # ------------------------------------------------------------ the filters' verdicts

    def _kind_of(self, pod: Pod) -> int:
        # Rules between pods look at labels, too, and default ones at the workload; other filters at the spec alone.
        labels: tuple[object, ...] = ()
        if has_rules(pod) or self._spreads_by_default(pod):
            owner = pod.metadata.controller
            labels = *sorted(pod.metadata.labels.items()), None if owner is None else owner.uid
        key = (id(pod.spec), pod.metadata.namespace, labels)
        kind = self._kinds.setdefault(key, len(self._kinds))
        if kind == len(self._samples):
            self._samples.append(pod)
            self._rows_of_kind.append(None)
        return kind

    def rows_for(self, candidate: MovablePod) -> BoolArray:
        """Return the rows on which a replacement of the pod lacks at most room, by the filters' verdicts now.

        Of topology spread only the labels count: `is_spread` says what it allows after moves.
        """
        rows = self._rows_of_kind[candidate.kind]
        if rows is None:
            pod = as_replacement(self._samples[candidate.kind])
            blockers = blockers_of(self._engine, self._cluster.framework_for(pod), pod)
            spread = self._spread_of_kind[candidate.kind]
            dynamic = self._in_columns(pod) | ({SPREAD} if spread is not None else frozenset())
            rows = self._rows_for(blockers, [plugin for plugin in blockers.plugins if plugin not in dynamic])
            if spread is not None:
                rows &= spread.labelled
            self._rows_of_kind[candidate.kind] = rows
        return rows

    def _spread_plugin(self, pod: Pod) -> PodTopologySpread | None:
        framework = self._cluster.framework_for(pod)
        if all(plugin.name != SPREAD for plugin in framework.filters):
            return None
        plugin = framework.plugins.get(SPREAD)
        return plugin if isinstance(plugin, PodTopologySpread) else None

    def _spreads_by_default(self, pod: Pod) -> bool:
        plugin = self._spread_plugin(pod)
        return plugin is not None and plugin.may_reject_by_default

    def _spread(self, pod: Pod) -> Spread | None:
        """Return the hard spread constraints of the pod; None if it has none that are valid."""
        plugin = self._spread_plugin(pod)
        try:
            spread = None if plugin is None else plugin.hard_spread(pod, self.snapshot)
        except FieldError:
            return None
        return None if spread is None else Spread(pod, spread, self.snapshot, self._movable_rows)

    def spread_of(self, index: int) -> Spread | None:
        """Return the topology spread of the replacement of a movable pod; None if it has no hard constraints."""
        return self._spread_of_kind[self.movable[index].kind]

    def is_spread(self, index: int, row: int, moves: Iterable[Move]) -> bool:
        """Return whether its constraints let the movable pod go to the row after these moves."""
        spread = self.spread_of(index)
        return spread is None or spread.allows(row, (*moves, (index, GONE)))

    @cached_property
    def _counting_selectors(self) -> Sequence[tuple[str, Selector]]:
        spreads = (*self._spread_of_kind, *(request.spread for request in self.requests))
        rules = ((spread.namespace, selector) for spread in spreads if spread for selector in spread.selectors)
        return list(dict.fromkeys(rules))

    def counting(self, index: int) -> tuple[bool, ...]:
        """Return which selectors of spread constraints count the movable pod: equal for pods that count alike."""
        if index not in self._labels_counted:
            meta = self.movable[index].pod.metadata
            self._labels_counted[index] = tuple(
                meta.namespace == namespace and selector.matches(meta.labels)
                for namespace, selector in self._counting_selectors
            )
        return self._labels_counted[index]

    def _in_columns(self, pod: Pod) -> frozenset[str]:
        """Return the filters whose verdict on the pod follows from the columns."""
        return frozenset({FIT} if self.devices.needs_of(pod) is None else {FIT, DEVICES})

    def _rows_for(self, blockers: Blockers, plugins: Collection[str]) -> BoolArray:
        mask = np.zeros(self.count, np.bool_)
        mask[self.snapshot.order] = True
        for plugin in sorted(plugins, key=_OF_NODES.__contains__, reverse=True):
            rejections = blockers.rejected_by(plugin)
            self.is_exact &= plugin in _OF_NODES or not (mask & rejections).any()
            mask &= ~rejections
        return mask

    def request(self, pod: Pod) -> Request:
        """Return the pod with the rows on which only room is missing. Raises: ScheduleError: a plugin failed."""
        blockers = blockers_of(self._engine, self._cluster.framework_for(pod), pod)
        spread = self._spread(pod) if self._moves_mend_skew else None
        dynamic = self._in_columns(pod) | _BETWEEN_PODS | ({SPREAD} if spread is not None else frozenset())
        strict = [plugin for plugin in blockers.plugins if plugin not in dynamic]
        rows, conflicts = self._rows_for(blockers, strict), dict[int, tuple[int, ...]]()
        apart: Mapping[int, frozenset[str]] = {}
        need = self.need_of(pod)
        between = np.zeros(self.count, np.bool_)
        for plugin in _BETWEEN_PODS & set(blockers.plugins):
            between |= blockers.rejected_by(plugin)
        if (between & rows).any():
            conflicts, apart = self._conflicts(pod, np.flatnonzero(between & rows).tolist())
            is_left_out = between & ~np.isin(np.arange(self.count), list(conflicts))
            self.is_exact &= not (rows & is_left_out).any()
            rows = rows & ~is_left_out
        if spread is not None:
            rows = rows & spread.labelled
        return Request(pod, need, rows, self.size(need), conflicts, apart, spread)

    def _conflicts(
        self, pod: Pod, rows: Sequence[int]
    ) -> tuple[dict[int, tuple[int, ...]], Mapping[int, frozenset[str]]]:
        """Return the rows that the pod may use once some movable pods are gone, with these; and `Request.apart`."""
        namespaces = {item.key: item.metadata.labels for item in self._cluster.store.objects(NAMESPACES).values()}
        # Which pods may go is decided by `Movability`; only what is in the way is asked of it.
        evictions = Evictions(self.snapshot, pod, namespaces, Budgets((), self._cluster.release.preemption))
        index_of = {candidate.pod.uid: index for index, candidate in enumerate(self.movable)}
        conflicts = {}
        for row in rows:
            pods = {pod.uid for pod in (*evictions.port_holders(row), *evictions.kept_apart(row))}
            indexes = [index_of.get(uid, -1) for uid in pods]
            if indexes and all(index >= 0 for index in indexes):
                conflicts[row] = tuple(sorted(indexes))
        return conflicts, {index_of[uid]: keys for uid, keys in evictions.keys_apart().items() if uid in index_of}

    def is_apart(self, request: Request, row: int, moves: Iterable[tuple[int, int]]) -> bool:
        """Return whether no moved pod comes to the domain of the row from which anti-affinity keeps it."""
        if not request.apart:
            return True
        labels = self.snapshot.node(row).labels
        return not any(
            key in labels and labels[key] == self.snapshot.node(target).labels.get(key)
            for index, target in moves
            for key in request.apart.get(index, ())
        )


def has_rules(pod: Pod) -> bool:
    """Return whether the pod has rules about other pods, or volumes or devices."""
    spec = pod.spec
    terms = pod_terms(pod)
    return bool(
        spec.topology_spread_constraints
        or spec.volumes
        or spec.resource_claims
        or host_ports(spec)
        or terms.required_affinity
        or terms.required_anti_affinity
    )


def as_replacement(pod: Pod) -> Pod:
    """Return the pod that is created in this one's place, as far as the scheduler is concerned."""
    metadata = replace_fields(pod.metadata, name=f"{pod.metadata.name}-again", uid=f"{pod.uid}-again")
    pod = unbound(pod)
    # Claims of templates go with the pod, and the new one gets others.
    return replace_fields(pod, metadata=metadata, status=replace_fields(pod.status, resource_claim_statuses=()))


def cost_of(pod: Pod) -> Cost:
    """Return the cost of moving the pod.

    Bytes are the memory and the local storage that it requests, which its replacement fills anew. A priority counts as
    far as it is above 0. Restarts are its containers.
    """
    requests = filter_requests(pod.spec)
    containers = len(pod.spec.containers) + sum(container.is_sidecar for container in pod.spec.init_containers)
    return requests.get(MEMORY, 0) + requests.get(EPHEMERAL_STORAGE, 0), max(pod.priority, 0), containers
