"""Karmada's Cluster object, reduced to the fields that estimates read.

Source: karmada pkg/apis/cluster/v1alpha1 types.go, v1.18.
"""

from __future__ import annotations

from podium.objects.meta import ClusterObject, RawQuantity, ResourceList, Value


class ResourceModelRange(Value, frozen=True):
    """How much of one resource is free on the nodes of a grade: at least `min`, less than `max`."""

    name: str = ""
    min: RawQuantity = "0"
    max: RawQuantity = "0"


class ResourceModel(Value, frozen=True):
    """One grade of nodes."""

    grade: int = 0
    ranges: tuple[ResourceModelRange, ...] = ()


class AllocatableModeling(Value, frozen=True):
    """The number of nodes of a grade."""

    grade: int = 0
    count: int = 0


class ResourceSummary(Value, frozen=True):
    """The sums over the cluster: allocatable of all nodes, requests of bound pods, requests of pending pods."""

    allocatable: ResourceList = {}
    allocating: ResourceList = {}
    allocated: ResourceList = {}
    allocatable_modelings: tuple[AllocatableModeling, ...] = ()


class ClusterSpec(Value, frozen=True):
    """A cluster's desired state."""

    resource_models: tuple[ResourceModel, ...] = ()


class ClusterStatus(Value, frozen=True):
    """A cluster's observed state."""

    resource_summary: ResourceSummary | None = None


class Cluster(ClusterObject, frozen=True):
    """A member cluster as Karmada knows it."""

    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()
