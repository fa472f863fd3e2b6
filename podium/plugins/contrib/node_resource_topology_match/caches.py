"""The topologies of the nodes as the plugin sees them: as reported, or less what was placed since they were reported.

Owns the three ways: pass-through, discarding nodes with reserved pods, and reserving placed pods on every NUMA node
until a later report contains them. Profiles with the same args share one cache.

Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology/cache (2026-08).
Differs: topologies come from a watch, so that no decision waits for a request, and nodes that join later are learnt.
The first attempt after a report or a period checks whether reports contain the placed pods. A node without relevant
pods is checked, too. Pods that have ended are not among the relevant ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from podium.cluster import Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.resource_types import PODS
from podium.plugins.contrib.node_resource_topology_match.args import CacheArgs, NodeResourceTopologyMatchArgs
from podium.plugins.contrib.node_resource_topology_match.demands import demands_of, exclusive_containers
from podium.plugins.contrib.node_resource_topology_match.fingerprints import fingerprint
from podium.plugins.contrib.node_resource_topology_match.objects import (
    NODE_RESOURCE_TOPOLOGIES,
    NodeResourceTopology,
    attribute,
)
from podium.plugins.contrib.node_resource_topology_match.placement import ContainerKey, placement_of
from podium.plugins.contrib.node_resource_topology_match.topology import Amounts, Topology, alignment_of, topology_of
from podium.plugins.shared.followed import Followed

_FINGERPRINT_ATTRIBUTE: Final = "nodeTopologyPodsFingerprint"
_METHOD_ATTRIBUTE: Final = "nodeTopologyPodsFingerprintMethod"
_EXCLUSIVE_METHOD: Final = "with-exclusive-resources"
_FINGERPRINT_ANNOTATION: Final = "topology.node.k8s.io/fingerprint"
_ONLY_EXCLUSIVE: Final = "OnlyExclusiveResources"
_CHANGES_KEPT: Final = 1 << 14


class Topologies:
    """The topologies as reported; base of the other two caches.

    Attributes:
        changes: the names of nodes whose topology has changed, so that answers about them can be kept until then.
        notes_pods: whether placed pods and rejections change the topologies, and not only reports.
    """

    notes_pods: ClassVar[bool] = False

    def __init__(self, handle: fwk.Handle) -> None:
        self.changes: ChangeLog[str] = ChangeLog(_CHANGES_KEPT)
        self.objects: fwk.Lister[NodeResourceTopology] = handle.lister(NODE_RESOURCE_TOPOLOGIES)
        self._parsed: dict[str, Topology | None] = {}
        self._followed = Followed(self.objects, self._on_change)

    def refresh(self) -> None:
        """Take in what has changed, before the topologies are asked for."""
        self._followed.read()

    def is_fresh(self, node_name: str) -> bool:
        """Return whether the node's topology can be relied on."""
        del node_name
        return True

    def get(self, node_name: str) -> Topology | None:
        """Return the node's topology; None if it has none."""
        if node_name in self._parsed:
            return self._parsed[node_name]
        topology = self._parsed[node_name] = self._parse(node_name)
        return topology

    def placement(self, node_name: str) -> Mapping[ContainerKey, int]:
        """Return on which NUMA node each container with exclusive resources runs; empty if unknown."""
        del node_name
        return {}

    def reserve(self, pod: Pod, node_name: str) -> None:
        """Note that the pod is about to be bound to the node."""

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Note that the pod was not bound."""

    def confirm(self, pod: Pod, node_name: str) -> None:
        """Note that the pod was bound."""

    def suspect(self, node_name: str) -> None:
        """Note that a pod did not fit on the node, perhaps because of reservations."""

    def _parse(self, node_name: str) -> Topology | None:
        nrt = self.objects.get(node_name)
        return None if nrt is None else topology_of(nrt)

    def _on_change(self, old: NodeResourceTopology | None, new: NodeResourceTopology | None) -> None:
        nrt = new or old
        assert nrt is not None
        self._forget(nrt.key)

    def _forget(self, node_name: str) -> None:
        self._parsed.pop(node_name, None)
        self.changes.append(node_name)


class DiscardingTopologies(Topologies):
    """The topologies as reported, but none for a node to which a pod is being bound."""

    notes_pods = True

    def __init__(self, handle: fwk.Handle) -> None:
        super().__init__(handle)
        self._binding: dict[str, set[str]] = {}

    def is_fresh(self, node_name: str) -> bool:
        """Return whether no pod is being bound to the node."""
        return node_name not in self._binding

    def reserve(self, pod: Pod, node_name: str) -> None:
        """Discard the node until the pod is bound."""
        self._binding.setdefault(node_name, set()).add(pod.uid)
        self.changes.append(node_name)

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Consider the node again."""
        uids = self._binding.get(node_name)
        if uids is not None:
            uids.discard(pod.uid)
            if not uids:
                del self._binding[node_name]
            self.changes.append(node_name)

    confirm = unreserve


class ReservingTopologies(Topologies):
    """The topologies less the requests of the pods placed since they were reported, taken off every NUMA node.

    A report is taken over, and the reservations dropped, once its fingerprint equals that of the pods on the node.

    Args:
        period_s: how often that is checked.
        keeps_placements: whether it is kept where each container runs.
    """

    notes_pods = True

    def __init__(self, handle: fwk.Handle, args: CacheArgs, period_s: float, *, keeps_placements: bool) -> None:
        super().__init__(handle)
        self._args = args
        self._period_s = period_s
        self._keeps_placements = keeps_placements
        self._own_names = handle.scheduler_names
        self._clock, self._snapshot = handle.clock, handle.snapshot
        self._next_s = 0.0
        self._taken: dict[str, NodeResourceTopology] = {}
        """The reports that were taken over."""
        self._reserved: dict[str, dict[str, Amounts]] = {}
        self._placements: dict[str, Mapping[ContainerKey, int]] = {}
        self._suspects: set[str] = set()
        self._foreign: set[str] = set()
        self._reconfigured: set[str] = set()
        detects = self._args.foreign_pods_detect != "None"
        self._pods = Followed(handle.lister(PODS), self._on_pod_change) if detects else None

    def refresh(self) -> None:
        """Check, after new reports and each period, which reports contain the pods placed since the last one."""
        self._followed.read()
        if self._pods is not None:
            self._pods.read()
        if (now_s := self._clock.now()) < self._next_s:
            return
        # Not the snapshot of a dry run, which lacks the victims.
        snapshot = self._snapshot()
        self._next_s = now_s + self._period_s
        for name in sorted(self._suspects | self._foreign):
            nrt = self.objects.get(name)
            if nrt is not None and self._contains_pods(nrt, _pods_on(snapshot, name)):
                self._take(nrt, snapshot)
        for name in sorted(self._reconfigured):
            if (nrt := self.objects.get(name)) is not None:
                self._take(nrt, snapshot)

    def is_fresh(self, node_name: str) -> bool:
        """Return whether no other scheduler has placed pods on the node since its topology was taken over."""
        return node_name not in self._foreign

    def placement(self, node_name: str) -> Mapping[ContainerKey, int]:
        """Return on which NUMA node each container with exclusive resources runs; empty if unknown."""
        return self._placements.get(node_name, {})

    def reserve(self, pod: Pod, node_name: str) -> None:
        """Take the pod's requests off every NUMA node of the node."""
        if node_name not in self._taken:
            return
        amounts, reserved = demands_of(pod.spec).pod, self._reserved.setdefault(node_name, {})
        # Reading the report again, less everything reserved, would cost more with every pod on the node.
        topology = self._parsed.get(node_name) if pod.key not in reserved else None
        reserved[pod.key] = amounts
        self._forget(node_name)
        if topology is not None:
            self._parsed[node_name] = topology.less({pod.key: amounts})

    def unreserve(self, pod: Pod, node_name: str) -> None:
        """Give the pod's requests back."""
        if self._reserved.get(node_name, {}).pop(pod.key, None) is not None:
            self._forget(node_name)

    def suspect(self, node_name: str) -> None:
        """Check the node's reports from the next period on."""
        self._suspects.add(node_name)

    def _parse(self, node_name: str) -> Topology | None:
        nrt = self._taken.get(node_name)
        return None if nrt is None else topology_of(nrt).less(self._reserved.get(node_name, {}))

    def _on_change(self, old: NodeResourceTopology | None, new: NodeResourceTopology | None) -> None:
        if new is None:
            assert old is not None
            self._drop(old.key)
            return
        if new.key in self._suspects or new.key in self._foreign:
            # It may be what pods wait for: check it at the next attempt, whatever is left of the period.
            self._next_s = 0.0
        report = self._taken.get(new.key)
        if report is None:
            self._taken[new.key] = new
            self._forget(new.key)
        elif self._args.resync_scope != "OnlyResources" and alignment_of(report) != alignment_of(new):
            self._reconfigured.add(new.key)

    def _drop(self, node_name: str) -> None:
        self._taken.pop(node_name, None)
        self._reserved.pop(node_name, None)
        self._placements.pop(node_name, None)
        for names in (self._suspects, self._foreign, self._reconfigured):
            names.discard(node_name)
        self._forget(node_name)

    def _take(self, nrt: NodeResourceTopology, snapshot: Snapshot) -> None:
        self._drop(nrt.key)
        self._taken[nrt.key] = nrt
        if self._keeps_placements:
            names = topology_of(nrt).resource_names
            containers = [
                (pod.metadata.namespace, pod.metadata.name, container)
                for pod in self._relevant(_pods_on(snapshot, nrt.key))
                for container in _exclusive_containers(pod, names)
            ]
            self._placements[nrt.key] = placement_of(nrt, containers)

    def _contains_pods(self, nrt: NodeResourceTopology, pods: Iterable[Pod]) -> bool:
        """Return whether the report was made of just these pods."""
        reported_fingerprint = attribute(nrt.attributes, _FINGERPRINT_ATTRIBUTE)
        only_exclusive = reported_fingerprint is not None and (
            self._args.resync_method == _ONLY_EXCLUSIVE
            or (
                self._args.resync_method in (None, "Autodetect")
                and attribute(nrt.attributes, _METHOD_ATTRIBUTE) == _EXCLUSIVE_METHOD
            )
        )
        if reported_fingerprint is None:
            reported_fingerprint = nrt.metadata.annotations.get(_FINGERPRINT_ANNOTATION, "")
        names = topology_of(nrt).resource_names
        counted_pods = [
            (pod.metadata.namespace, pod.metadata.name)
            for pod in self._relevant(pods)
            if not only_exclusive or _exclusive_containers(pod, names)
        ]
        return bool(reported_fingerprint) and reported_fingerprint == fingerprint(counted_pods)

    def _relevant(self, pods: Iterable[Pod]) -> Iterable[Pod]:
        """Return the pods that an agent sees on the node."""
        if self._args.informer_mode == "Shared":
            return (pod for pod in pods if pod.status.phase == "Running")
        return (pod for pod in pods if pod.status.phase not in ("", "Pending"))

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        name = pod.node_name
        if not name or pod.spec.scheduler_name in self._own_names or name in self._foreign:
            return
        nrt = self.objects.get(name)
        if nrt is None or (
            self._args.foreign_pods_detect == _ONLY_EXCLUSIVE
            and not _exclusive_containers(pod, topology_of(nrt).resource_names)
        ):
            return
        self._foreign.add(name)
        self.changes.append(name)


def _pods_on(snapshot: Snapshot, node_name: str) -> list[Pod]:
    row = snapshot.row_of.get(node_name)
    return [] if row is None else list(snapshot.pods[row].values())


def _exclusive_containers(pod: Pod, resource_names: frozenset[str]) -> list[str]:
    try:
        return exclusive_containers(pod, resource_names)
    except FieldError:
        return []


class Caches:
    """The caches of all profiles. Plugins share it by `handle.shared(Caches)`."""

    def __init__(self, handle: fwk.Handle) -> None:
        self._handle = handle
        self._by_args: dict[tuple[object, ...], Topologies] = {}

    def of(self, args: NodeResourceTopologyMatchArgs) -> Topologies:
        """Return the cache that these args ask for, made at the first call."""
        cache_args = args.cache or CacheArgs()
        period_s = 0 if args.discard_reserved_nodes else max(args.cache_resync_period_seconds, 0)
        key = (args.discard_reserved_nodes, period_s, *((cache_args, args.preempts) if period_s else ()))
        if key not in self._by_args:
            if args.discard_reserved_nodes:
                self._by_args[key] = DiscardingTopologies(self._handle)
            elif period_s:
                self._by_args[key] = ReservingTopologies(
                    self._handle, cache_args, float(period_s), keeps_placements=args.preempts
                )
            else:
                self._by_args[key] = Topologies(self._handle)
        return self._by_args[key]
