"""The types of Karmada's questions: replicas, or sets of components, with their requests and node claims.

Owns these types, which follow `work.karmada.io/v1alpha2`. Never looks at a cluster.

Source: karmada pkg/apis/work/v1alpha2 binding_types.go and pkg/estimator/pb, v1.18.
"""

from __future__ import annotations

from typing import Final, Protocol

from podium.objects.affinity import NodeSelector
from podium.objects.core import Toleration
from podium.objects.meta import ResourceList, Value

MAX_INT32: Final = 2**31 - 1
"""Upstream's value for no limit, and the largest answer."""


class NodeClaim(Value, frozen=True):
    """The nodes that a replica may run on."""

    hard_node_affinity: NodeSelector | None = None
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class Requirements(Protocol):
    """The requirements of a replica, of a workload or of a component."""

    @property
    def node_claim(self) -> NodeClaim | None:
        """The nodes that the replica may run on."""
        ...

    @property
    def resource_request(self) -> ResourceList:
        """The resources that the replica requests."""
        ...

    @property
    def priority_class_name(self) -> str:
        """The name of the priority class, which selects the quotas."""
        ...


class ReplicaRequirements(Value, frozen=True):
    """The requirements of one replica of a workload."""

    node_claim: NodeClaim | None = None
    resource_request: ResourceList = {}
    namespace: str = ""
    priority_class_name: str = ""


class ComponentReplicaRequirements(Value, frozen=True):
    """The requirements of one replica of a component."""

    node_claim: NodeClaim | None = None
    resource_request: ResourceList = {}
    priority_class_name: str = ""


class Component(Value, frozen=True):
    """One component of a workload that consists of several."""

    name: str = ""
    replicas: int = 0
    replica_requirements: ComponentReplicaRequirements | None = None


class AssumedWorkload(Value, frozen=True):
    """A workload that Karmada has assigned to the cluster and whose pods do not exist there yet."""

    namespace: str = ""
    components: tuple[Component | None, ...] = ()


class ObjectReference(Value, frozen=True):
    """A reference to a workload in the member cluster."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


def saturate(count: int) -> int:
    """Limit the count to the largest int32.

    Differs: upstream's sum over nodes wraps around.
    """
    return min(count, MAX_INT32)
