"""ResourceBinding and Placement, reduced to the fields that a division reads.

Source: karmada pkg/apis/work/v1alpha2 binding_types.go and pkg/apis/policy/v1alpha1 propagation_types.go, v1.18.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from podium.estimator.requirements import Component, ReplicaRequirements
from podium.objects.affinity import NodeSelectorRequirement
from podium.objects.core import Toleration
from podium.objects.meta import Int32, Int64, LabelSelector, NamespacedObject, Value

Replicas = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A number of replicas. Karmada's API has int32 there, and its division of a negative number has no meaning."""


class FieldSelector(Value, frozen=True):
    """Selects clusters by their fields `provider`, `region` and `zone`."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()


class ClusterAffinity(Value, frozen=True):
    """Selects clusters; every part must match."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class ClusterAffinityTerm(ClusterAffinity, frozen=True):
    """A named group of clusters, and the groups that take what does not fit into it, in this order."""

    affinity_name: str = ""
    overflow_affinities: tuple[ClusterAffinityTerm, ...] | None = None


class SpreadConstraint(Value, frozen=True):
    """Limits how many groups of clusters are selected."""

    spread_by_field: str = ""
    spread_by_label: str = ""
    min_groups: Int64 = 0
    max_groups: Int64 = 0


class StaticClusterWeight(Value, frozen=True):
    """The weight of the clusters that match."""

    target_cluster: ClusterAffinity = ClusterAffinity()
    weight: Int64 = 0


class ClusterPreferences(Value, frozen=True):
    """The weights by which replicas are divided. A dynamic weight takes precedence over the list."""

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


class ReplicaSchedulingStrategy(Value, frozen=True):
    """How replicas are assigned to the selected clusters."""

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


class Placement(Value, frozen=True):
    """The rules for choosing clusters."""

    cluster_affinity: ClusterAffinity | None = None
    cluster_affinities: tuple[ClusterAffinityTerm, ...] = ()
    cluster_tolerations: tuple[Toleration, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    replica_scheduling: ReplicaSchedulingStrategy | None = None

    def term_named(self, name: str) -> ClusterAffinityTerm | None:
        """Return the affinity group of that name, None if there is none or if `cluster_affinity` takes precedence."""
        if self.cluster_affinity is not None:
            return None
        return next((term for term in self.cluster_affinities if term.affinity_name == name), None)

    def constraint_by(self, field: str) -> SpreadConstraint | None:
        """Return the spread constraint by that field; of several the last, as upstream."""
        constraints = [item for item in self.spread_constraints if item.spread_by_field == field]
        return constraints[-1] if constraints else None

    @property
    def is_duplicated(self) -> bool:
        """True if every selected cluster gets all replicas."""
        strategy = self.replica_scheduling
        return strategy is None or strategy.replica_scheduling_type == "Duplicated"


class TargetCluster(Value, frozen=True):
    """A cluster with its number of replicas."""

    name: str = ""
    replicas: Int32 = 0


class GracefulEvictionTask(Value, frozen=True):
    """An eviction from a cluster that has not ended."""

    from_cluster: str = ""


class WorkloadAffinityGroups(Value, frozen=True):
    """The groups of workloads that share clusters, or must not."""

    affinity_group: str = ""
    anti_affinity_group: str = ""


class BindingResource(Value, frozen=True):
    """The workload that a binding is for."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class BindingSpec(Value, frozen=True):
    """A binding's desired state. `clusters` is the previous result, and where the result is written."""

    resource: BindingResource = BindingResource()
    replicas: Replicas = 0
    replica_requirements: ReplicaRequirements | None = None
    components: tuple[Component, ...] = ()
    clusters: tuple[TargetCluster, ...] = ()
    placement: Placement | None = None
    graceful_eviction_tasks: tuple[GracefulEvictionTask, ...] = ()
    workload_affinity_groups: WorkloadAffinityGroups | None = None
    reschedule_triggered_at: str | None = None

    @property
    def rules(self) -> Placement:
        """The placement; a binding without one is refused when it is read."""
        assert self.placement is not None
        return self.placement

    @property
    def strategy(self) -> ReplicaSchedulingStrategy:
        """The strategy of assignment, an empty one if there is none."""
        return self.rules.replica_scheduling or ReplicaSchedulingStrategy()

    @property
    def is_workload(self) -> bool:
        """True if the object runs pods."""
        return self.replicas > 0 or self.replica_requirements is not None or bool(self.components)

    def assigned_replicas(self, cluster: str) -> int:
        """Return the replicas that the cluster has by the previous result."""
        return next((target.replicas for target in self.clusters if target.name == cluster), 0)


class BindingStatus(Value, frozen=True):
    """A binding's observed state."""

    # Upstream's Go field has another name, SchedulerObservedAffinityName.
    scheduler_observing_affinity_name: str = ""
    last_scheduled_time: str | None = None


class ResourceBinding(NamespacedObject, frozen=True):
    """A workload of Karmada, and the clusters that it is assigned to."""

    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()


class ClusterResourceBinding(ResourceBinding, frozen=True):
    """The same for an object without a namespace."""
