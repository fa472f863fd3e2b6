"""What a pod demands of NUMA nodes: the requests of its containers, in thousandths.

Units: thousandths, cpu's in thousandths of a core.
Source: sigs.k8s.io/scheduler-plugins pkg/noderesourcetopology (2026-08).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from podium.objects.core import Container, Pod, PodSpec, once_per_spec
from podium.objects.quantity import Quantity
from podium.objects.requests import exact_amounts
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from podium.plugins.contrib.calculations import (
    BEST_EFFORT,
    GUARANTEED,
    effective_requests,
    is_native_resource,
    qos_class,
)
from podium.plugins.contrib.node_resource_topology_match.topology import Amounts

_STORAGE: Final = "storage"
_MILLI_IN_NANO: Final = 10**6


@dataclass(frozen=True, slots=True)
class ContainerDemand:
    """One container's requests. `kind` is the word for it in messages: "init container", "sidecar container"…"""

    name: str
    kind: str
    requests: Amounts


@dataclass(frozen=True, slots=True)
class Demands:
    """The requests of a pod.

    Attributes:
        init_containers: sidecars among them, in order.
        pod: the requests of the pod as a whole.
        has_non_native: a container requests a device, or another resource that Kubernetes does not know.
    """

    init_containers: tuple[ContainerDemand, ...]
    containers: tuple[ContainerDemand, ...]
    pod: Amounts
    has_non_native: bool

    @property
    def all_containers(self) -> tuple[ContainerDemand, ...]:
        """Return the init containers, and then the others."""
        return self.init_containers + self.containers


@once_per_spec
def demands_of(spec: PodSpec) -> Demands:
    """Return the requests of the spec.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    init_containers = tuple(
        _demand(
            container,
            "sidecar container" if container.is_sidecar else "init container",
            f"spec.initContainers[{index}]",
        )
        for index, container in enumerate(spec.init_containers)
    )
    containers = tuple(
        _demand(container, "container", f"spec.containers[{index}]") for index, container in enumerate(spec.containers)
    )
    has_non_native = any(
        not is_native_resource(name) for demand in (*init_containers, *containers) for name in demand.requests
    )
    return Demands(init_containers, containers, _in_milli(effective_requests(spec)), has_non_native)


def _demand(container: Container, kind: str, path: str) -> ContainerDemand:
    requests = exact_amounts(container.resources.requests, f"{path}.resources.requests")
    return ContainerDemand(container.name, kind, _in_milli(requests))


def _in_milli(amounts: Mapping[str, Quantity]) -> Amounts:
    return {name: -(-amount.nano_value // _MILLI_IN_NANO) for name, amount in amounts.items()}


def is_guaranteed(pod: Pod) -> bool:
    """Return whether the pod has resources of its own, as those of QoS class Guaranteed do."""
    return qos_class(pod) == GUARANTEED


def passes_unchecked(pod: Pod) -> bool:
    """Return whether the pod requests nothing that NUMA nodes have."""
    return qos_class(pod) == BEST_EFFORT and not demands_of(pod.spec).has_non_native


def is_numa_affine(name: str) -> bool:
    """Return whether every amount of the resource belongs to a NUMA node, as cpu and memory do."""
    return name in (CPU, MEMORY) or is_hugepages(name)


def is_host_level(name: str) -> bool:
    """Return whether the resource may belong to the node as a whole."""
    return name in (EPHEMERAL_STORAGE, _STORAGE) or not is_native_resource(name)


def is_exclusive(name: str, amount: int, resource_names: frozenset[str], *, guaranteed: bool) -> bool:
    """Return whether a request takes its amount from one NUMA node for itself.

    Args:
        amount: in thousandths.
        resource_names: the resources that the node's topology lists.
    """
    if not is_native_resource(name):
        return name in resource_names
    if not guaranteed or amount <= 0:
        return False
    return amount % 1000 == 0 if name == CPU else name == MEMORY or is_hugepages(name)


def exclusive_containers(pod: Pod, resource_names: frozenset[str]) -> list[str]:
    """Return the names of the sidecars and other containers that keep exclusive resources while the pod runs."""
    guaranteed, demands = is_guaranteed(pod), demands_of(pod.spec)
    sidecars = [
        demand
        for demand, container in zip(demands.init_containers, pod.spec.init_containers, strict=True)
        if container.is_sidecar
    ]
    return [
        demand.name
        for demand in (*sidecars, *demands.containers)
        if any(
            is_exclusive(name, amount, resource_names, guaranteed=guaranteed)
            for name, amount in demand.requests.items()
        )
    ]
