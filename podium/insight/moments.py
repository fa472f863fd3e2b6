"""The moments of a rehearsal at which pods end, by which a plain pod that comes is answered without another rehearsal.

Until such a pod has a node it changes nothing for the others, so that everything happens as rehearsed. Each end wakes
it, as all pods that lack resources, and its turn follows from its priority: pods of the same priority that came before
it stay ahead of it.

A pod is plain if nothing but resources, labels and taints of a node decides about it, and if it cannot preempt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.cluster.affinity_terms import pod_terms
from podium.cluster.pod_usage import host_ports, readable_pod_usage
from podium.engine.cluster import Cluster
from podium.objects.core import Pod
from podium.plugins import IN_TREE

_PODS: Final = "pods"
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_QUEUE_SORT: Final = "PrioritySort"


@dataclass(slots=True)
class Moment:
    """The ends of pods that come together, and the attempts that follow.

    Attributes:
        at_s: in seconds since the epoch.
        end_count: the number of pods that have ended until then.
        free: what each node on which a pod has ended has free before the attempts, by resource, and for how many pods.
        placements: the pods that then get a node, each with it, in order.
        is_plain: whether no pod is nominated, so that all that is free counts.
    """

    at_s: float
    end_count: int
    free: Mapping[str, Mapping[str, int]]
    is_plain: bool
    placements: list[tuple[Pod, str]] = field(default_factory=list)


class UnclearError(Exception):
    """The moments do not tell what becomes of the pod."""


def free_on(cluster: Cluster, names: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
    """Return what the nodes have free, by name and resource."""
    snapshot = cluster.engine_to_ask.cache.snapshot()
    free = {}
    for name in names:
        if (row := snapshot.row_of.get(name)) is not None:
            free[name] = {
                item: snapshot.allocatable_on(row, item) - snapshot.requested_on(row, item) for item in _NATIVE
            }
            free[name][_PODS] = int(snapshot.allowed_pods[row] - snapshot.pod_count[row])
    return free


def is_plain(cluster: Cluster, pod: Pod) -> bool:
    """Return whether only resources, labels and taints of a node decide about the pod.

    Other pods are not looked at: neither whether they keep it off, nor whether it preempts any.
    """
    framework, spec, terms = cluster.framework_for(pod), pod.spec, pod_terms(pod)
    if framework.queue_sort.name != _QUEUE_SORT or any(name not in IN_TREE for name in framework.plugins):
        return False
    if cluster.gates_of(pod):
        return False
    if terms.required_affinity or terms.required_anti_affinity:
        return False
    if spec.topology_spread_constraints or host_ports(spec) or spec.volumes or spec.resource_claims:
        return False
    return {name for name, amount in readable_pod_usage(pod).requests.items() if amount} <= _NATIVE


def first_place(
    moments: Sequence[Moment], pod: Pod, nodes: Collection[str], newcomers: Collection[str]
) -> tuple[Moment, str] | None:
    """Return the moment at which a plain pod gets a node, and the node; None if it gets none.

    Args:
        nodes: the names of the nodes that labels and taints allow.
        newcomers: the keys of pods that come after it.

    Raises:
        UnclearError: several nodes fit, or nominated pods matter.
    """
    for moment in moments:
        if not moment.is_plain:
            raise UnclearError
        free = {name: dict(amounts) for name, amounts in moment.free.items() if name in nodes}
        if not any(_fits(pod, amounts) for amounts in free.values()):
            continue
        for item, name in moment.placements:
            is_ahead = item.priority > pod.priority or (item.priority == pod.priority and item.key not in newcomers)
            if is_ahead and name in free:
                _take(item, free[name])
        names = [name for name, amounts in free.items() if _fits(pod, amounts)]
        if len(names) > 1:
            # Scores decide, which depend on all nodes.
            raise UnclearError
        if names:
            return moment, names[0]
    return None


def _fits(pod: Pod, free: Mapping[str, int]) -> bool:
    requests = readable_pod_usage(pod).requests
    return free[_PODS] > 0 and all(free.get(name, 0) >= amount for name, amount in requests.items() if amount)


def _take(pod: Pod, free: dict[str, int]) -> None:
    free[_PODS] -= 1
    for name, amount in readable_pod_usage(pod).requests.items():
        if name in free:
            free[name] -= amount
