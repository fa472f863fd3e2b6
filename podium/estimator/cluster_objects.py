"""Karmada's Cluster, cut down to what estimates read.

Source: karmada pkg/apis/cluster/v1alpha1 types.go, v1.18.
"""

from __future__ import annotations

from podium.objects.core import ClusterObject, RawQuantity, ResourceList, Value


class ResourceModelRange(Value, frozen=True):
    """How much of one resource the nodes of a grade have left: `min` or more, less than `max`."""

    name: str = ""
    min: RawQuantity = "0"
    max: RawQuantity = "0"


class ResourceModel(Value, frozen=True):
    """One grade of nodes."""

    grade: int = 0
    ranges: tuple[ResourceModelRange, ...] = ()


class AllocatableModeling(Value, frozen=True):
    """How many nodes are of a grade."""

    grade: int = 0
    count: int = 0


class ResourceSummary(Value, frozen=True):
    """What all nodes have together, what pods on them take, and what pods without a node ask for."""

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
