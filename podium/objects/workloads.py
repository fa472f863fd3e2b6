"""Namespaces, workloads and budgets, cut down to what scheduling reads; see `objects.core`."""

from __future__ import annotations

from podium.objects.meta import ClusterObject, Int32, LabelSelector, NamespacedObject, Value


class Namespace(ClusterObject, frozen=True):
    """A namespace; its labels are what namespace selectors match."""


class PriorityClass(ClusterObject, frozen=True):
    """A named priority of pods."""

    value: Int32 = 0


class ServiceSpec(Value, frozen=True):
    """The pods of a service."""

    selector: dict[str, str] = {}


class Service(NamespacedObject, frozen=True):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationController(NamespacedObject, frozen=True):
    """A replication controller; its selector is a plain map, as that of a service."""

    spec: ServiceSpec = ServiceSpec()


class WorkloadSpec(Value, frozen=True):
    """The pods of a workload."""

    selector: LabelSelector | None = None


class ReplicaSet(NamespacedObject, frozen=True):
    """A replica set."""

    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(NamespacedObject, frozen=True):
    """A stateful set."""

    spec: WorkloadSpec = WorkloadSpec()


class PodDisruptionBudgetStatus(Value, frozen=True):
    """The number of pods that may still be disrupted, and those being disrupted (pod name → eviction time)."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(NamespacedObject, frozen=True):
    """A limit on how many of the selected pods may be disrupted at a time."""

    spec: WorkloadSpec = WorkloadSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
