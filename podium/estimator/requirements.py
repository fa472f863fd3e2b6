"""What Karmada asks room for: replicas, or sets of components, each with what it needs and where it may run.

Owns the shapes, which are those of `work.karmada.io/v1alpha2`. Never looks at a cluster.

Source: karmada pkg/apis/work/v1alpha2 binding_types.go and pkg/estimator/pb, v1.18.
"""

from __future__ import annotations

from typing import Final, Protocol

from podium.objects.core import NodeSelector, ResourceList, Toleration, Value

MAX_INT32: Final = 2**31 - 1
"""Upstream's word for no limit, and the most that fits into an answer."""


class NodeClaim(Value, frozen=True):
    """The nodes that a replica may run on."""

    hard_node_affinity: NodeSelector | None = None
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class Requirements(Protocol):
    """What a replica of any kind needs."""

    @property
    def node_claim(self) -> NodeClaim | None:
        """Where it may run."""
        ...

    @property
    def resource_request(self) -> ResourceList:
        """What it takes."""
        ...

    @property
    def priority_class_name(self) -> str:
        """Which quotas count it."""
        ...


class ReplicaRequirements(Value, frozen=True):
    """What one replica of a workload needs."""

    node_claim: NodeClaim | None = None
    resource_request: ResourceList = {}
    namespace: str = ""
    priority_class_name: str = ""


class ComponentReplicaRequirements(Value, frozen=True):
    """What one replica of a component needs."""

    node_claim: NodeClaim | None = None
    resource_request: ResourceList = {}
    priority_class_name: str = ""


class Component(Value, frozen=True):
    """One of the parts of which a set of a workload consists."""

    name: str = ""
    replicas: int = 0
    replica_requirements: ComponentReplicaRequirements | None = None


class AssumedWorkload(Value, frozen=True):
    """What has been given to the cluster and cannot be seen there yet."""

    namespace: str = ""
    components: tuple[Component | None, ...] = ()


class ObjectReference(Value, frozen=True):
    """A workload of the member cluster."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


def saturated(count: int) -> int:
    """The count as an int32.

    Differs: upstream lets the sum over nodes wrap around.
    """
    return min(count, MAX_INT32)
