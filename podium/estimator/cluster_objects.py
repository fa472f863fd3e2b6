"""Karmada's Cluster object, reduced to the fields that estimates and divisions read.

Source: karmada pkg/apis/cluster/v1alpha1 types.go, v1.18.
"""

from __future__ import annotations

from typing import Final

from podium.objects.core import Taint
from podium.objects.meta import ClusterObject, RawQuantity, ResourceList, Value
from podium.objects.resource_types import ResourceType


class ResourceModelRange(Value, frozen=True):
    """The range of one resource's free amount on the nodes of a grade: at least `min`, less than `max`."""

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


class NodeSummary(Value, frozen=True):
    """The number of a cluster's nodes, and of those that are ready."""

    total_num: int = 0
    ready_num: int = 0


class ClusterSpec(Value, frozen=True):
    """A cluster's desired state."""

    sync_mode: str = ""
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    resource_models: tuple[ResourceModel, ...] = ()


class ApiResource(Value, frozen=True):
    """One kind of objects that a cluster's API server serves."""

    name: str = ""
    kind: str = ""


class ApiEnablement(Value, frozen=True):
    """The kinds that a cluster's API server serves in one version of one group."""

    group_version: str = ""
    resources: tuple[ApiResource, ...] = ()


class ClusterStatus(Value, frozen=True):
    """A cluster's observed state."""

    api_enablements: tuple[ApiEnablement, ...] = ()
    node_summary: NodeSummary | None = None
    resource_summary: ResourceSummary | None = None


class Cluster(ClusterObject, frozen=True):
    """A member cluster as Karmada knows it."""

    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()


CLUSTERS: Final = ResourceType("Cluster", "/apis/cluster.karmada.io/v1alpha1/clusters", Cluster)
