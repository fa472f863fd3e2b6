"""Nodes that are there, or on their way, while pods are planned onto them.

Owns what one node has left. A plan only asks whether it takes a pod; why it does not is worked out if a person asks.

Source: karpenter pkg/controllers/provisioning/scheduling/existingnode.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.objects.core import Pod
from podium.objects.requests import Requests
from podium.objects.storage import CSINode
from podium.provisioner.apis.labels import HOSTNAME
from podium.provisioner.cloudprovider.instance_types import fits
from podium.provisioner.provisioning.planned_pods import PlannedPod
from podium.provisioner.provisioning.topology import Topology
from podium.provisioner.scheduling.amounts import amounts_text, less, requests_of_all
from podium.provisioner.scheduling.host_ports import HostPort, any_conflict, host_ports
from podium.provisioner.scheduling.refusals import Refusal
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from podium.provisioner.scheduling.taints import taints_text, untolerated_taints
from podium.provisioner.scheduling.volumes import AttachedVolumes, VolumeError, Volumes, exceeds_limits, together
from podium.provisioner.state.state_node import StateNode


@dataclass(frozen=True, slots=True, eq=False)
class NodeRoom:
    """The resources that a node has left before anything is planned onto it.

    Attributes:
        requirements: Its labels, and its hostname.
        coming: What pods of DaemonSets take that will run on it, but do not yet.
        free: What pods can still use.
        ports: The node's ports that are in use.
        volumes: The claims that are attached.
        volume_limits: How many claims can be attached, by driver.
    """

    requirements: Requirements
    coming: Requests
    free: Requests
    ports: tuple[HostPort, ...]
    volumes: AttachedVolumes
    volume_limits: Mapping[str, int]

    @classmethod
    def of(cls, state: StateNode, daemons: Sequence[Pod], volumes: Volumes, csi_node: CSINode | None) -> NodeRoom:
        """Return the room on a node.

        Args:
            daemons: the pods of DaemonSets that run on it, or will.
            csi_node: what drivers say about the node.
        """
        # DaemonSets' pods that run already are in `available`; only what is still to come is kept free.
        running = state.daemon_requests
        coming = {name: max(amount - running.get(name, 0), 0) for name, amount in requests_of_all(daemons).items()}
        hostname = Requirement(HOSTNAME, False, frozenset((state.hostname,)))
        return cls(
            Requirements.of_labels(state.labels).add(hostname),
            coming,
            less(state.available, coming),
            tuple(port for pod in state.pods for port in host_ports(pod.spec)),
            _attached_volumes(state.pods, volumes),
            _limits(csi_node),
        )


class ExistingNode:
    """The resources that a node has left for pods. The node itself stays as it is.

    Args:
        topology: where the node's hostname is registered.

    Attributes:
        pods: The pods that were planned onto it.
        requirements: Its labels, as far as they are known.
    """

    def __init__(self, state: StateNode, room: NodeRoom, topology: Topology) -> None:
        self.state = state
        self.pods: list[Pod] = []
        self._topology = topology
        self._free = room.free
        self.requirements = room.requirements
        self._ports = list(room.ports)
        self._volumes = room.volumes
        self._volume_limits = room.volume_limits

    @property
    def free(self) -> Requests:
        """The resources that it has left; empty if any amount is negative, since no pod fits then."""
        return {} if min(self._free.values(), default=0) < 0 else self._free

    def take(self, pod: PlannedPod) -> bool:
        """Plan the pod onto this node if it can run there.

        Returns: whether it can.
        """
        # Cheapest tests first: this runs for each pod on each node that the index leaves.
        if not fits(pod.requests, self._free) or untolerated_taints(self.state.taints, pod.spec.tolerations):
            return False
        volumes = together(self._volumes, pod.attached)
        if exceeds_limits(volumes, self._volume_limits) or any_conflict(host_ports(pod.spec), self._ports):
            return False
        # Strict, unlike for new nodes: the labels of an existing node are all there, a missing one will not appear.
        if not self.requirements.is_compatible(pod.requirements):
            return False
        base = self.requirements.union(pod.requirements)
        # The first alternative that fits counts, as upstream; a later one might keep more choices open.
        for alternative in pod.volume_alternatives or (None,):
            narrowing = self._narrow(pod, base, alternative)
            if narrowing is not None:
                break
        else:
            return False
        self.pods.append(pod.pod)
        self._free = less(self._free, pod.requests)
        self.requirements = narrowing
        self._topology.record(pod.pod, self.state.taints, narrowing)
        self._ports += host_ports(pod.spec)
        self._volumes = volumes
        return True

    def refusal_of(self, pod: PlannedPod) -> Refusal | None:
        """Return the reason why the node cannot take the pod now, or None if it can. Plans nothing."""
        untaken = untolerated_taints(self.state.taints, pod.spec.tolerations)
        if untaken:
            return Refusal.of(taints_text(untaken))
        if exceeds_limits(together(self._volumes, pod.attached), self._volume_limits):
            return Refusal.of("would exceed the node's volume limits")
        if any_conflict(host_ports(pod.spec), self._ports):
            return Refusal.of("a host port is taken")
        if not fits(pod.requests, self._free):
            return Refusal.of(f"has {amounts_text(self._missing(pod))} too little")
        conflicts = self.requirements.incompatibilities(pod.requirements)
        if conflicts:
            return Refusal.of("; ".join(conflicts))
        base = self.requirements.union(pod.requirements)
        refusals: list[str] = []
        for alternative in pod.volume_alternatives or (Requirements(),):
            conflicts = base.incompatibilities(alternative)
            narrowing = self._topology.narrow(
                pod.pod, self.state.taints, pod.strict_requirements, base.union(alternative)
            )
            if conflicts:
                refusals.append("; ".join(conflicts))
            elif isinstance(narrowing, Refusal):
                refusals.append(narrowing.text())
            else:
                return None
        return Refusal.of("; ".join(refusals))

    def _missing(self, pod: PlannedPod) -> Requests:
        amounts = {name: max(amount, 0) for name, amount in self._free.items()}
        return {name: short for name, amount in pod.requests.items() if (short := amount - amounts.get(name, 0)) > 0}

    def _narrow(self, pod: PlannedPod, base: Requirements, alternative: Requirements | None) -> Requirements | None:
        if alternative is not None:
            if not base.is_compatible(alternative):
                return None
            base = base.union(alternative)
        narrowing = self._topology.narrow(pod.pod, self.state.taints, pod.strict_requirements, base)
        # What it returns has everything of the base already.
        return (
            None
            if isinstance(narrowing, Refusal) or not (narrowing is base or base.is_compatible(narrowing))
            else narrowing
        )


def _attached_volumes(pods: Iterable[Pod], volumes: Volumes) -> AttachedVolumes:
    attached_volumes: AttachedVolumes = {}
    for pod in pods:
        try:
            attached_volumes = together(attached_volumes, volumes.attached_volumes(pod))
        except VolumeError:
            continue  # nothing is known about a volume that is gone
    return attached_volumes


def _limits(csi_node: CSINode | None) -> Mapping[str, int]:
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
