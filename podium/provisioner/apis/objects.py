"""The objects of a cluster that planning reads: Karpenter's own, and Kubernetes' where planning needs more of them.

Owns their fields; `reading` makes them of parsed JSON. Never decides anything.

Source: karpenter pkg/apis/v1 nodepool.go and nodeclaim.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from podium.config.duration import parse_duration
from podium.objects.core import Node, NodeSpec, Pod, PodSpec, Taint
from podium.objects.errors import FieldError
from podium.objects.meta import ClusterObject, Int32, LabelSelector, NamespacedObject, ObjectMeta, ResourceList, Value
from podium.objects.resource_types import KubeObject, ResourceType
from podium.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
)
from podium.objects.workloads import (
    Namespace,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

NEVER: Final = "Never"
"""The duration that is never over."""

WHEN_EMPTY: Final = "WhenEmpty"
WHEN_UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"
BALANCED: Final = "Balanced"
CONSOLIDATION_POLICIES: Final = (WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED)


class Condition(Value, frozen=True):
    """A condition of a NodePool or a NodeClaim."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


def is_true(conditions: Iterable[Condition], name: str) -> bool:
    """Return True if the condition is there and true."""
    return true_condition(conditions, name) is not None


def true_condition(conditions: Iterable[Condition], name: str) -> Condition | None:
    """Return the condition if it is there and true."""
    return next((condition for condition in conditions if condition.type == name and condition.status == "True"), None)


class LabelRequirement(Value, frozen=True):
    """A requirement of a NodePool on its nodes' labels."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()
    min_values: Int32 | None = None


class NodeClassReference(Value, frozen=True):
    """The provider's class of a node."""

    group: str = ""
    kind: str = ""
    name: str = ""


class NodeClaimSpec(Value, frozen=True):
    """The demands on a node."""

    requirements: tuple[LabelRequirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()
    termination_grace_period: str | None = None
    expire_after: str | None = None


class NodeClaimTemplate(Value, frozen=True):
    """The form of a NodePool's NodeClaims."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeClaimSpec = NodeClaimSpec()


class Disruption(Value, frozen=True):
    """The rules by which nodes of a NodePool may be removed, and how many at a time.

    Attributes:
        budgets: As `DisruptionBudgets.parse` reads them.
    """

    consolidate_after: str = "0s"
    consolidation_policy: str = WHEN_UNDERUTILIZED
    budgets: Any = None

    @property
    def consolidate_after_s(self) -> float | None:
        """The time for which no pod may have come or gone before a node may go; None means that it never may.

        Raises:
            FieldError: the value is no duration.
        """
        if self.consolidate_after == NEVER:
            return None
        try:
            return parse_duration(self.consolidate_after)
        except ValueError as error:
            raise FieldError("spec.disruption.consolidateAfter", str(error)) from error


class NodePoolSpec(Value, frozen=True):
    """The nodes that a NodePool may have."""

    template: NodeClaimTemplate = NodeClaimTemplate()
    disruption: Disruption = Disruption()
    limits: ResourceList | None = None
    weight: Int32 | None = None
    replicas: Int32 | None = None


class NodePoolStatus(Value, frozen=True):
    """The state of a NodePool."""

    conditions: tuple[Condition, ...] = ()


class NodePool(ClusterObject, frozen=True):
    """A kind of nodes that may be bought."""

    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()


class NodeOverlaySpec(Value, frozen=True):
    """The changes to instance types, and which of them are meant."""

    requirements: tuple[LabelRequirement, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: ResourceList = {}
    weight: Int32 | None = None


class NodeOverlay(ClusterObject, frozen=True):
    """A change to what is planned with: prices and extended resources of instance types."""

    spec: NodeOverlaySpec = NodeOverlaySpec()


class NodeClaimStatus(Value, frozen=True):
    """The machine of a NodeClaim, and its progress."""

    provider_id: str = msgspec.field(default="", name="providerID")
    node_name: str = ""
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    last_pod_event_time: str | None = None


READY_CLAIM: Final = tuple(Condition(type=kind, status="True") for kind in ("Launched", "Registered", "Initialized"))
"""The conditions of a NodeClaim whose node is up."""


class NodeClaim(ClusterObject, frozen=True):
    """One node that was asked for."""

    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()


class ProvidedNodeSpec(NodeSpec, frozen=True):
    """A node's spec with the machine's name."""

    provider_id: str = msgspec.field(default="", name="providerID")


class ProvidedNode(Node, frozen=True, tag="Node"):
    """A node as its provider knows it."""

    spec: ProvidedNodeSpec = ProvidedNodeSpec()


class PodTemplate(Value, frozen=True):
    """The form of a DaemonSet's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class DaemonSetSpec(Value, frozen=True):
    """The pods of a DaemonSet."""

    template: PodTemplate = PodTemplate()


class DaemonSet(NamespacedObject, frozen=True):
    """A pod on every node that fits it."""

    spec: DaemonSetSpec = DaemonSetSpec()


class BudgetSpec(Value, frozen=True):
    """The number of pods of a selector that must stay."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(PodDisruptionBudgetStatus, frozen=True):
    """The number of pods that may be disrupted, and what it follows from."""

    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0


class Budget(NamespacedObject, frozen=True, tag="PodDisruptionBudget"):
    """A PodDisruptionBudget with the numbers that it allows."""

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class LocalVolumeSpec(PersistentVolumeSpec, frozen=True):
    """A volume's spec, with whether it is a directory of a node."""

    local: dict[str, Any] | None = None
    host_path: dict[str, Any] | None = None

    @property
    def is_on_one_node(self) -> bool:
        """Return True if the volume is a directory of one node, which a new node has as well as any."""
        return self.local is not None or self.host_path is not None


class Volume(PersistentVolume, frozen=True, tag="PersistentVolume"):
    """A volume with its kind."""

    spec: LocalVolumeSpec = LocalVolumeSpec()


@dataclass(frozen=True, kw_only=True)
class ClusterObjects:
    """The objects of a cluster, in order of namespace and name.

    Attributes:
        closed_pools: By NodePool that cannot be read, why: nothing is bought from it, and its nodes stay.
        left_out: By node that no plan may remove, why.
        others: Objects of kinds that Karpenter does not read: PodGroups, and what podium's own plugins read.
        warnings: Sentences that name what of the input does not count in plans.
    """

    node_pools: tuple[NodePool, ...] = ()
    node_claims: tuple[NodeClaim, ...] = ()
    nodes: tuple[ProvidedNode, ...] = ()
    pods: tuple[Pod, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    budgets: tuple[Budget, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    services: tuple[Service, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_nodes: tuple[CSINode, ...] = ()
    overlays: tuple[NodeOverlay, ...] = ()
    closed_pools: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    others: tuple[tuple[ResourceType[Any], KubeObject], ...] = ()
    warnings: tuple[str, ...] = ()
