"""NodeResourceTopologyMatch: a pod is placed where its resources fit into single NUMA nodes, as the kubelet demands.

Runs at: PreFilter, Filter, Score, Reserve, PostBind.
Verdict: Filter: Unschedulable where a container, or the pod, fits into no NUMA node, where the node's topology cannot
be relied on or read, and where the eviction of victims cannot be simulated.
Requeue: a pod is deleted, a node is added or changes its allocatable resources, a topology is added or changes.
Cost: a few microseconds for each node whose topology has changed since the last pod of the same spec, else one look-up.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology (2026-08, for Kubernetes 1.35).
Differs: amounts are compared in thousandths. See also the modules `caches`, `topology`, `scores` and `placement`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.amounts import amount_text
from podium.objects.core import Pod, PodSpec
from podium.objects.resource_names import CPU
from podium.plugins.contrib.node_resource_topology_match.args import NodeResourceTopologyMatchArgs
from podium.plugins.contrib.node_resource_topology_match.caches import Caches
from podium.plugins.contrib.node_resource_topology_match.demands import demands_of, is_guaranteed, passes_unchecked
from podium.plugins.contrib.node_resource_topology_match.eviction import EvictedPods, after_eviction
from podium.plugins.contrib.node_resource_topology_match.fit import Misfit, misfit
from podium.plugins.contrib.node_resource_topology_match.kept_answers import KeptAnswers
from podium.plugins.contrib.node_resource_topology_match.objects import NODE_RESOURCE_TOPOLOGIES
from podium.plugins.contrib.node_resource_topology_match.placement import ContainerKey
from podium.plugins.contrib.node_resource_topology_match.scores import (
    LEAST_NUMA_NODES,
    STRATEGIES,
    score_by,
    score_by_count,
)
from podium.plugins.contrib.node_resource_topology_match.topology import oddities
from podium.plugins.contrib.plugin_args import first_sentences

_CHANGES_KEPT: Final = 1 << 10
_NOT_FRESH: Final = "invalid node topology data"
_MISSING: Final = (
    f"the definition of {NODE_RESOURCE_TOPOLOGIES.plural}.{NODE_RESOURCE_TOPOLOGIES.group} is not installed, "
    "and whenMissing is Reject"
)
_NO_VICTIMS: Final[Mapping[str, Pod]] = MappingProxyType({})
_NO_PLACEMENT: Final[Mapping[ContainerKey, int]] = MappingProxyType({})


class NodeResourceTopologyMatch(
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.TableFilterPlugin,
    fwk.ScorePlugin,
    fwk.TableScorePlugin,
    fwk.ReservePlugin,
    fwk.PostBindPlugin,
):
    """Filters and scores nodes by the NUMA nodes that agents report."""

    Args = NodeResourceTopologyMatchArgs
    args: NodeResourceTopologyMatchArgs

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._topologies = handle.shared(Caches).of(args)
        self._weights = args.weights
        self._reasons: list[str] = [""]
        """Every reason given so far, by its verdict; the first one means that the node passes."""
        self._names_read = 0
        self._followed: Snapshot | None = None
        self._changed_rows: ChangeLog[int] = ChangeLog(_CHANGES_KEPT)
        self._verdicts = KeptAnswers(self._topologies, self._verdict)
        self._scores = KeptAnswers(self._topologies, self._score)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register what may free NUMA nodes, and reports of them."""
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        return (
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE),
            fwk.on(fwk.EventResource.NODE, add, fwk.ActionType.UPDATE_NODE_ALLOCATABLE),
            fwk.on("noderesourcetopologies.v1alpha2.topology.node.k8s.io", add, update),
        )

    # ------------------------------------------------------------ what is cached

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE if topologies change by reports only; CLUSTER if victims or rejections are noted, too."""
        if self.args.preempts or self.args.when_missing != "Pass" or self._topologies.notes_pods:
            return fwk.Scope.CLUSTER
        return fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE, or USAGE if the topologies also change with each pod that is placed."""
        return fwk.Scope.USAGE if self._topologies.notes_pods else fwk.Scope.NODE

    def outside_changes(self, snapshot: Snapshot) -> ChangeLog[int]:
        """Return the rows of nodes whose topology has changed."""
        self._topologies.refresh()
        names_log = self._topologies.changes
        # Most attempts find neither a new report nor another snapshot.
        if names_log.end == self._names_read and snapshot is self._followed:
            return self._changed_rows
        names = names_log.since(self._names_read)
        self._names_read = names_log.end
        if names is None or snapshot is not self._followed:
            self._followed = snapshot
            self._changed_rows = ChangeLog(_CHANGES_KEPT)
            return self._changed_rows
        for name in names:
            if (row := snapshot.row_of.get(name)) is not None:
                self._changed_rows.append(row)
        return self._changed_rows

    # ------------------------------------------------------------ victims

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return success; note that no pod is evicted yet."""
        if self.args.preempts:
            state.write(EvictedPods())
        return None, None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions | None:
        """Return the extensions that follow the victims of a preemption."""
        return EvictedPods.EXTENSIONS if self.args.preempts else None

    # ------------------------------------------------------------ filtering

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or Unschedulable."""
        self._topologies.refresh()
        evicted_pods = state.find(EvictedPods)
        victims = {} if evicted_pods is None else evicted_pods.pods
        if self._rejects_all(pod):
            reason = _MISSING
        elif victims and (placement := self._topologies.placement(node.name)):
            reason = self._reason(pod, node, victims, placement)
        else:
            reason = self._reason(pod, node)
        if reason and not victims:
            self._topologies.suspect(node.name)
        return fwk.unschedulable(reason) if reason else None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the number of the reason for each row."""
        self._topologies.refresh()
        if self._rejects_all(pod):
            return np.full(len(rows), self._number(_MISSING), np.int64)
        if passes_unchecked(pod):
            return None
        verdicts = self._verdicts.of(pod, snapshot, rows)
        if not verdicts.any():
            return None
        for row in rows[verdicts != 0].tolist():
            self._topologies.suspect(snapshot.name(row))
        return verdicts

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return Unschedulable with the reason of that number."""
        return fwk.unschedulable(self._reasons[verdict])

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return what is missing in the NUMA nodes of rejected nodes, and on how many of these."""
        counts: Counter[str] = Counter()
        for row in rows.tolist():
            if (missing := self._misfit(pod, snapshot.node(row))) is not None:
                counts[_detail(missing)] += 1
        return counts

    def notes(self) -> Sequence[str]:
        """Return what is ignored or suspicious in the topologies, the first few."""
        nrts = sorted(self._topologies.objects.list(), key=lambda nrt: nrt.key)
        return first_sentences(itertools.chain.from_iterable(map(oddities, nrts)))

    def _rejects_all(self, pod: Pod) -> bool:
        if self.args.when_missing == "Pass" or passes_unchecked(pod):
            return False
        return self.handle.is_missing(NODE_RESOURCE_TOPOLOGIES)

    def _verdict(self, pod: Pod, node: NodeInfo) -> int:
        return self._number(self._reason(pod, node))

    def _number(self, reason: str) -> int:
        if reason not in self._reasons:
            self._reasons.append(reason)
        return self._reasons.index(reason)

    def _reason(
        self,
        pod: Pod,
        node: NodeInfo,
        victims: Mapping[str, Pod] = _NO_VICTIMS,
        placement: Mapping[ContainerKey, int] = _NO_PLACEMENT,
    ) -> str:
        """Return why the pod does not fit on the node once the victims are gone; "" if it fits."""
        if passes_unchecked(pod):
            return ""
        if not self._topologies.is_fresh(node.name):
            return _NOT_FRESH
        topology = self._topologies.get(node.name)
        if topology is None or topology.problem:
            return "" if topology is None else topology.problem
        if victims:
            remaining = after_eviction(topology, victims.values(), placement)
            if isinstance(remaining, str):
                return f"eviction simulation in NRT is not possible:{remaining}"
            topology = remaining
        if not topology.alignment.is_single_numa_node:
            return ""
        missing = misfit(demands_of(pod.spec), topology, node, guaranteed=is_guaranteed(pod))
        return "" if missing is None else f"cannot align {missing.kind}"

    def _misfit(self, pod: Pod, node: NodeInfo) -> Misfit | None:
        topology = self._topologies.get(node.name)
        if topology is None or not topology.alignment.is_single_numa_node:
            return None
        return misfit(demands_of(pod.spec), topology, node, guaranteed=is_guaranteed(pod))

    # ------------------------------------------------------------ scoring

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return a score from 0 to 100; 100 on every node for a pod without resources of its own."""
        self._topologies.refresh()
        return self._score(pod, node)

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the score for each row."""
        if not is_guaranteed(pod):
            return np.full(len(rows), fwk.MAX_NODE_SCORE, np.int64)
        self._topologies.refresh()
        return self._scores.of(pod, snapshot, rows)

    def _score(self, pod: Pod, node: NodeInfo) -> int:
        if not is_guaranteed(pod):
            return fwk.MAX_NODE_SCORE
        topology = self._topologies.get(node.name) if self._topologies.is_fresh(node.name) else None
        if topology is None or topology.problem:
            return 0
        demands, strategy = demands_of(pod.spec), self.args.strategy
        if strategy == LEAST_NUMA_NODES:
            return score_by_count(demands, topology)
        if not topology.alignment.is_single_numa_node:
            return 0
        return score_by(STRATEGIES[strategy], demands, topology, self._weights)

    # ------------------------------------------------------------ on a node

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Note that the pod is about to be bound."""
        self._topologies.reserve(pod, node_name)
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Note that the pod was not bound."""
        self._topologies.unreserve(pod, node_name)

    async def post_bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Note that the pod was bound."""
        self._topologies.confirm(pod, node_name)


def _detail(missing: Misfit) -> str:
    subject = f"{missing.kind} {missing.container}" if missing.container else missing.kind
    if missing.largest_free is None:
        return f"NUMA: {subject} requests {missing.resource}, which no NUMA node has"
    amount, largest = (_text(missing.resource, value) for value in (missing.amount, missing.largest_free))
    return f"NUMA: {subject} requests {missing.resource} {amount} of one NUMA node, of which one has {largest} at most"


def _text(resource: str, milli: int) -> str:
    return amount_text(resource, milli if resource == CPU else -(-milli // 1000))
