"""NodeResourceTopology (`topology.node.k8s.io/v1alpha2`), cut down to what scheduling reads; see `objects.core`."""

from __future__ import annotations

from collections.abc import Iterable

from podium.objects.custom_resources import custom_resource
from podium.objects.meta import ClusterObject, Int64, RawQuantity, Value


class NRTAttribute(Value, frozen=True):
    """A name with a value."""

    name: str = ""
    value: str = ""


class NRTCost(Value, frozen=True):
    """The distance to the zone of that name."""

    name: str = ""
    value: Int64 = 0


class NRTResource(Value, frozen=True):
    """The amounts of one resource in a zone."""

    name: str = ""
    allocatable: RawQuantity = 0
    available: RawQuantity = 0


class NRTZone(Value, frozen=True):
    """A part of the node; those of the type `Node` are NUMA nodes."""

    name: str = ""
    type: str = ""
    costs: tuple[NRTCost, ...] = ()
    attributes: tuple[NRTAttribute, ...] = ()
    resources: tuple[NRTResource, ...] = ()


class NodeResourceTopology(ClusterObject, frozen=True):
    """The NUMA nodes of the node of the same name, as an agent on it has written them."""

    topology_policies: tuple[str, ...] = ()
    attributes: tuple[NRTAttribute, ...] = ()
    zones: tuple[NRTZone, ...] = ()


NODE_RESOURCE_TOPOLOGIES = custom_resource(
    "topology.node.k8s.io/v1alpha2", "noderesourcetopologies", NodeResourceTopology
)


def attribute(attributes: Iterable[NRTAttribute], name: str) -> str | None:
    """Return the value of the first attribute of that name; None if there is none."""
    return next((entry.value for entry in attributes if entry.name == name), None)
