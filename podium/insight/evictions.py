"""Chooses the pods to evict so that another pod fits on a node.

Owns the choice of sets: the pods that are in the way by themselves (host ports, anti-affinity), and those whose
requests are needed. Pods of DaemonSets and static pods are never evicted, because they come back, nor pods that are
ending already, nor more pods than the PodDisruptionBudgets allow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Final

from podium.cluster import PodUsage, Snapshot, host_ports
from podium.cluster.affinity_terms import TermKind, pod_terms
from podium.cluster.host_ports import ANY_ADDRESS
from podium.engine.cluster import stays_on_node
from podium.framework.preemption.candidates import Budgets
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.plugins.volumes.claims import named_claims

EXACT: Final = frozenset({"NodeResourcesFit", "NodePorts", "InterPodAffinity"})
"""The filters for which the pods to evict are known exactly; for others, every set has to be tried."""
_CANDIDATES_MAX: Final = {1: 500, 2: 40, 3: 20}


class Evictions:
    """The sets of pods to evict for one pod."""

    def __init__(
        self, snapshot: Snapshot, pod: Pod, namespace_labels: Mapping[str, Mapping[str, str]], budgets: Budgets
    ) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._namespace_labels = namespace_labels
        self._budgets = budgets

    def sets(self, row: int, plugins: Collection[str], pods_max: int) -> Iterator[tuple[Pod, ...]]:
        """Yield the smallest sets of up to `pods_max` pods whose eviction may make the node pass these filters."""
        conflicts = {pod.uid: pod for pod in (*self.port_holders(row), *self.kept_apart(row))}
        # A conflict cannot be evicted away in part.
        if len(conflicts) > pods_max or not all(map(self._is_evictable, conflicts.values())):
            return
        shortage = self._shortage(row, list(conflicts.values()))
        is_exact = set(plugins) <= EXACT
        if not shortage and is_exact:
            if conflicts and self._budgets_allow(tuple(conflicts.values())):
                yield tuple(conflicts.values())
            return
        # Even all candidates together free too little, so no subset needs to be tried.
        if shortage and not self._cover(self._candidates(row, conflicts, shortage, 1, plugins), row, shortage):
            return
        for size in range(1 if shortage or not conflicts else 0, pods_max - len(conflicts) + 1):
            is_any_enough = False
            for extra in combinations(self._candidates(row, conflicts, shortage, size, plugins), size):
                victims = (*conflicts.values(), *extra)
                if self._cover(extra, row, shortage) and self._budgets_allow(victims):
                    is_any_enough = True
                    yield victims
            if is_any_enough and is_exact:
                # Larger sets would hold needless victims.
                return

    def _candidates(
        self, row: int, conflicts: Mapping[str, Pod], shortage: Mapping[str, int], size: int, plugins: Collection[str]
    ) -> Sequence[Pod]:
        """Return the further pods that may be evicted, those that free most first."""
        pods_on_node = self._snapshot.pods[row].values()
        other_pods: list[Pod] = []
        # For these two filters the pods in the way may be on any node: they share a domain or a claim.
        if not shortage and "PodTopologySpread" in plugins:
            other_pods = [pod for pods in self._snapshot.pods for pod in pods.values()]
        elif "VolumeRestrictions" in plugins:
            claims = set(named_claims(self._pod))
            users = (pod for pods in self._snapshot.pods for pod in pods.values() if pod.spec.volumes)
            other_pods = [pod for pod in users if claims & set(named_claims(pod))]
        pods = {
            pod.uid: pod for pod in (*pods_on_node, *other_pods) if pod.uid not in conflicts and self._is_evictable(pod)
        }

        def share(pod: Pod) -> float:
            requests = filter_requests(pod.spec)
            return sum(min(requests.get(name, 0) / amount, 1) for name, amount in shortage.items())

        # Combinations explode: of pairs and triples only the most promising pods are combined.
        return sorted(pods.values(), key=lambda pod: (-share(pod), pod.priority, pod.key))[
            : _CANDIDATES_MAX.get(size, 0)
        ]

    def _is_evictable(self, pod: Pod) -> bool:
        # DaemonSets and static pods come back at once, so evicting them frees nothing.
        return not pod.is_terminating and not stays_on_node(pod) and not self._budgets.forbid(pod)

    def _budgets_allow(self, pods: Sequence[Pod]) -> bool:
        return not self._budgets.split(pods)[0]

    # ------------------------------------------------------------ what is in the way

    def _shortage(self, row: int, victims: Sequence[Pod]) -> Mapping[str, int]:
        """Return how much of each resource, and how many pods, the node is short of once the victims are gone."""
        snapshot = self._snapshot
        usages = self._usages(row, victims)
        missing = {"pods": int(snapshot.pod_count[row] - snapshot.allowed_pods[row]) + 1 - len(usages)}
        for resource, amount in filter_requests(self._pod.spec).items():
            free = int(snapshot.allocatable(resource)[row] - snapshot.requested(resource)[row])
            gain = sum(usage.requests.get(resource, 0) for usage in usages)
            if amount > 0:
                missing[resource] = amount - free - gain
        return {resource: amount for resource, amount in missing.items() if amount > 0}

    def _cover(self, pods: Sequence[Pod], row: int, shortage: Mapping[str, int]) -> bool:
        usages = self._usages(row, pods)
        return all(
            (len(usages) if resource == "pods" else sum(usage.requests.get(resource, 0) for usage in usages)) >= amount
            for resource, amount in shortage.items()
        )

    def _usages(self, row: int, pods: Sequence[Pod]) -> list[PodUsage]:
        """Return the usages of those pods that are on the node."""
        snapshot = self._snapshot
        return [snapshot.pod_usage(row, pod) for pod in pods if pod.uid in snapshot.pods[row]]

    def port_holders(self, row: int) -> Iterator[Pod]:
        """Yield the pods on the node that hold a host port of the incoming pod."""
        ports = host_ports(self._pod.spec)
        if not ports:
            return
        for pod in self._snapshot.pods[row].values():
            if any(
                (port.protocol, port.port) == (other_port.protocol, other_port.port)
                and (port.ip == other_port.ip or ANY_ADDRESS in (port.ip, other_port.ip))
                for port in ports
                for other_port in host_ports(pod.spec)
            ):
                yield pod

    def kept_apart(self, row: int) -> Iterator[Pod]:
        """Yield the pods in the node's topology domains that anti-affinity, theirs or the incoming pod's, excludes."""
        node = self._snapshot.nodes[row]
        assert node is not None
        for key, value in node.metadata.labels.items():
            yield from self._apart.get((key, value), ())

    def keys_apart(self) -> Mapping[str, frozenset[str]]:
        """Return the labels that each pod and the incoming one must not share, by the UID of the pod."""
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for (key, _), pods in self._apart.items():
            for pod in pods:
                keys[pod.uid].add(key)
        return {uid: frozenset(of_pod) for uid, of_pod in keys.items()}

    @cached_property
    def _apart(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """The pods that anti-affinity, theirs or the incoming pod's, keeps apart from it, by topology domain."""
        pods_by_topology: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        incoming, snapshot = self._pod, self._snapshot
        anti_affinity_terms = pod_terms(incoming).required_anti_affinity
        namespace = incoming.metadata.namespace
        namespace_labels = self._namespace_labels.get(namespace, {})
        for row, pods in enumerate(snapshot.pods):
            node = snapshot.nodes[row]
            if node is None:
                continue
            labels = node.metadata.labels
            for pod in pods.values():
                keys = {
                    entry.term.topology_key
                    for entry in pod_terms(pod).for_other_pods
                    if entry.kind is TermKind.REQUIRED_ANTI_AFFINITY
                    and entry.term.matches(namespace, incoming.metadata.labels, namespace_labels)
                }
                other_namespace_labels = self._namespace_labels.get(pod.metadata.namespace, {})
                keys |= {
                    term.topology_key
                    for term in anti_affinity_terms
                    if term.matches(pod.metadata.namespace, pod.metadata.labels, other_namespace_labels)
                }
                for key in keys:
                    if key in labels:
                        pods_by_topology[key, labels[key]].append(pod)
        return pods_by_topology
