"""The result of a demo, computed from the API server's objects. This module prints nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from podium.cli.demo.devices import DeviceUse
from podium.objects.core import Node, Pod
from podium.objects.requests import node_allocatable, requests_on_node
from podium.objects.resource_names import CPU, MEMORY
from podium.objects.topology_labels import ZONE

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One node's utilisation: the pods' requests as fractions of its allocatable resources, from 0 to 1."""

    name: str
    zone: str
    instance_type: str
    pods: int
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state in the API server at the end.

    Attributes: ``pods``, the number of pods that can fit; ``bound_count``, the number of them with a node; ``unbound``,
    the names of the others; ``unschedulable``, name and reason of each pod reported unschedulable; ``misreported``, the
    names of the pods that cannot fit and have a node or were not reported unschedulable; ``devices``, the allocation of
    the devices, if the nodes have some.
    """

    nodes: tuple[NodeUse, ...]
    pods: int
    bound_count: int
    duration_s: float
    unbound: tuple[str, ...] = ()
    unschedulable: tuple[tuple[str, str], ...] = ()
    misreported: tuple[str, ...] = ()
    devices: DeviceUse | None = None

    @property
    def is_success(self) -> bool:
        """True if every pod that can fit is bound, all others are reported unschedulable, and no device is shared."""
        return not self.unbound and not self.misreported and not (self.devices and self.devices.twice)

    @property
    def pods_per_s(self) -> float:
        """The number of bound pods per second."""
        return self.bound_count / self.duration_s if self.duration_s else 0.0

    def summary(self) -> dict[str, int | float]:
        """Return the demo's JSON line."""
        devices = {} if self.devices is None else {"devices_in_use": self.devices.in_use}
        return {
            "nodes": len(self.nodes),
            "pods": self.pods,
            "bound": self.bound_count,
            "unschedulable": len(self.unschedulable),
            "duration_s": round(self.duration_s, 3),
            "pods_per_s": round(self.pods_per_s, 1),
            **devices,
        }


def assess(nodes: Sequence[Node], pods: Sequence[Pod], unplaceable: Collection[str], duration_s: float) -> Outcome:
    """Compare the pods with the expectation.

    Args:
        unplaceable: the names of the pods that fit on no node.
    """
    on_node: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.node_name:
            on_node[pod.node_name].append(pod)
    can_fit = [pod for pod in pods if pod.metadata.name not in unplaceable]
    unbound = tuple(sorted(pod.metadata.name for pod in can_fit if not pod.node_name))
    unschedulable = {pod.metadata.name: message for pod in pods if (message := why_unschedulable(pod)) is not None}
    return Outcome(
        nodes=tuple(_use(node, on_node[node.name]) for node in nodes),
        pods=len(can_fit),
        bound_count=len(can_fit) - len(unbound),
        duration_s=duration_s,
        unbound=unbound,
        unschedulable=tuple(sorted(unschedulable.items())),
        misreported=tuple(sorted(set(unplaceable) - unschedulable.keys())),
    )


def why_unschedulable(pod: Pod) -> str | None:
    """Return the message of the pod's PodScheduled condition; None if it is bound or not reported unschedulable."""
    condition = pod.status.condition("PodScheduled")
    if pod.node_name or condition is None or condition.reason != "Unschedulable":
        return None
    return condition.message


def pods_per_zone(nodes: Sequence[NodeUse]) -> list[tuple[str, int, int]]:
    """Return for each zone its name, its number of nodes and its number of pods, sorted by name."""
    sizes = Counter(node.zone for node in nodes)
    pods: Counter[str] = Counter()
    for node in nodes:
        pods[node.zone] += node.pods
    return [(zone, sizes[zone], pods[zone]) for zone in sorted(sizes)]


def _use(node: Node, pods: Sequence[Pod]) -> NodeUse:
    allocatable, _ = node_allocatable(node)
    requests: Counter[str] = Counter()
    for pod in pods:
        requests.update(requests_on_node(pod))
    labels = node.metadata.labels
    return NodeUse(
        name=node.name,
        zone=labels.get(ZONE, ""),
        instance_type=labels.get(_INSTANCE_TYPE, ""),
        pods=len(pods),
        cpu=requests[CPU] / allocatable[CPU],
        memory=requests[MEMORY] / allocatable[MEMORY],
    )
