"""Which pods to evict so that another pod fits on a node.

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

from podium.cluster import Snapshot, host_ports
from podium.cluster.affinity_terms import TermKind, pod_terms
from podium.cluster.host_ports import ANY_ADDRESS
from podium.engine.cluster import stays_on_node
from podium.framework.preemption.candidates import Budgets
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from podium.plugins.volumes.claims import named_claims

EXACT: Final = frozenset({"NodeResourcesFit", "NodePorts", "InterPodAffinity"})
"""The filters of which it is known which pods have to go; for others, every set has to be tried."""
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

    def sets(self, row: int, plugins: Collection[str], most: int) -> Iterator[tuple[Pod, ...]]:
        """The smallest sets of at most so many pods without which these filters may let the pod onto the node."""
        must = {pod.uid: pod for pod in (*self.port_holders(row), *self.kept_apart(row))}
        if len(must) > most or not all(map(self._may_go, must.values())):
            return
        needed = self._shortage(row, list(must.values()))
        is_exact = set(plugins) <= EXACT
        if not needed and is_exact:
            if must and self._allowed(tuple(must.values())):
                yield tuple(must.values())
            return
        if needed and not self._frees(self._candidates(row, must, needed, 1, plugins), row, needed):
            return
        for size in range(1 if needed or not must else 0, most - len(must) + 1):
            found = False
            for more in combinations(self._candidates(row, must, needed, size, plugins), size):
                chosen = (*must.values(), *more)
                if self._frees(more, row, needed) and self._allowed(chosen):
                    found = True
                    yield chosen
            if found and is_exact:
                return

    def _candidates(
        self, row: int, must: Mapping[str, Pod], needed: Mapping[str, int], size: int, plugins: Collection[str]
    ) -> Sequence[Pod]:
        """The pods that may be evicted beside, those that free most first."""
        there = self._snapshot.pods[row].values()
        elsewhere: list[Pod] = []
        if not needed and "PodTopologySpread" in plugins:
            elsewhere = [pod for pods in self._snapshot.pods for pod in pods.values()]
        elif "VolumeRestrictions" in plugins:
            claims = set(named_claims(self._pod))
            users = (pod for pods in self._snapshot.pods for pod in pods.values() if pod.spec.volumes)
            elsewhere = [pod for pod in users if claims & set(named_claims(pod))]
        pods = {pod.uid: pod for pod in (*there, *elsewhere) if pod.uid not in must and self._may_go(pod)}

        def share(pod: Pod) -> float:
            requests = filter_requests(pod.spec)
            return sum(min(requests.get(name, 0) / amount, 1) for name, amount in needed.items())

        return sorted(pods.values(), key=lambda pod: (-share(pod), pod.priority, pod.key))[
            : _CANDIDATES_MAX.get(size, 0)
        ]

    def _may_go(self, pod: Pod) -> bool:
        return not pod.is_terminating and not stays_on_node(pod) and not self._budgets.forbid(pod)

    def _allowed(self, pods: Sequence[Pod]) -> bool:
        return not self._budgets.split(pods)[0]

    # ------------------------------------------------------------ what is in the way

    def _shortage(self, row: int, gone: Sequence[Pod]) -> Mapping[str, int]:
        """What is still missing of each resource, and of pods, without these pods."""
        snapshot = self._snapshot
        on_node = snapshot.pod_usages(row)
        usages = [on_node[pod.uid] for pod in gone if pod.uid in on_node]
        missing = {"pods": int(snapshot.pod_count[row] - snapshot.allowed_pods[row]) + 1 - len(usages)}
        for resource, amount in filter_requests(self._pod.spec).items():
            free = int(snapshot.allocatable(resource)[row] - snapshot.requested(resource)[row])
            freed = sum(usage.requests.get(resource, 0) for usage in usages)
            if amount > 0:
                missing[resource] = amount - free - freed
        return {resource: amount for resource, amount in missing.items() if amount > 0}

    def _frees(self, pods: Sequence[Pod], row: int, needed: Mapping[str, int]) -> bool:
        on_node = self._snapshot.pod_usages(row)
        usages = [on_node[pod.uid] for pod in pods if pod.uid in on_node]
        return all(
            (len(usages) if resource == "pods" else sum(usage.requests.get(resource, 0) for usage in usages)) >= amount
            for resource, amount in needed.items()
        )

    def port_holders(self, row: int) -> Iterator[Pod]:
        """The pods on the node that have a host port that the pod wants."""
        wanted = host_ports(self._pod.spec)
        if not wanted:
            return
        for pod in self._snapshot.pods[row].values():
            if any(
                (one.protocol, one.port) == (other.protocol, other.port)
                and (one.ip == other.ip or ANY_ADDRESS in (one.ip, other.ip))
                for one in wanted
                for other in host_ports(pod.spec)
            ):
                yield pod

    def kept_apart(self, row: int) -> Iterator[Pod]:
        """The pods in a topology of the node that anti-affinity, the pod's or their own, keeps apart from it."""
        node = self._snapshot.nodes[row]
        assert node is not None
        for key, value in node.metadata.labels.items():
            yield from self._apart.get((key, value), ())

    @cached_property
    def _apart(self) -> Mapping[tuple[str, str], Sequence[Pod]]:
        """By topology: the pods there that the pod's anti-affinity or their own keeps apart from it."""
        found: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        asked, snapshot = self._pod, self._snapshot
        own = pod_terms(asked).required_anti_affinity
        its_namespace = asked.metadata.namespace
        its_labels = self._namespace_labels.get(its_namespace, {})
        for row, pods in enumerate(snapshot.pods):
            node = snapshot.nodes[row]
            if node is None:
                continue
            labels = node.metadata.labels
            for pod in pods.values():
                keys = {
                    each.term.topology_key
                    for each in pod_terms(pod).for_other_pods
                    if each.kind is TermKind.REQUIRED_ANTI_AFFINITY
                    and each.term.matches(its_namespace, asked.metadata.labels, its_labels)
                }
                theirs = self._namespace_labels.get(pod.metadata.namespace, {})
                keys |= {
                    term.topology_key
                    for term in own
                    if term.matches(pod.metadata.namespace, pod.metadata.labels, theirs)
                }
                for key in keys:
                    if key in labels:
                        found[key, labels[key]].append(pod)
        return found
