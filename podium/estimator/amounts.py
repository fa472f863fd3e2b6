"""Amounts of resources as the estimator counts them: in whole units, each amount rounded up.

Owns what a replica demands and what a running pod uses on its node, by Karmada's rules, which are simpler than the
scheduler's. Never compares amounts.

Units: cpu in millicores, everything else in the unit of its quantity.
Source: karmada pkg/util/resource.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podium.cluster import PodUsage
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity, ResourceList
from podium.objects.quantity import Quantity, QuantityError, milli_value, parse, value
from podium.objects.resource_names import CPU, is_counted_resource


class Demand(NamedTuple):
    """A positive amount of one resource."""

    resource: str
    amount: int


def exact(raw: RawQuantity, path: str) -> Quantity:
    """Parse a quantity.

    Raises:
        FieldError: it cannot be read.
    """
    try:
        return parse(raw)
    except QuantityError as error:
        raise FieldError(path, str(error)) from error


def whole_units(resource: str, raw: RawQuantity, path: str) -> int:
    """Return the amount in the resource's units, rounded up.

    Raises:
        FieldError: it cannot be read.
    """
    try:
        return milli_value(raw) if resource == CPU else value(raw)
    except QuantityError as error:
        raise FieldError(path, str(error)) from error


def count_resources(amounts: ResourceList, path: str) -> dict[str, int]:
    """Return the amounts of the resources that are compared with nodes. The resource `pods` is left out.

    Raises:
        FieldError: one cannot be read.
    """
    return {
        name: whole_units(name, raw, f"{path}[{name}]") for name, raw in amounts.items() if is_counted_resource(name)
    }


def demands(request: ResourceList) -> tuple[Demand, ...]:
    """Return what each replica requests of the resources that are compared with nodes.

    Raises:
        FieldError: an amount cannot be read.
    """
    return tuple(
        Demand(name, amount) for name, amount in count_resources(request, "resourceRequest").items() if amount > 0
    )


@once_per_spec
def _pod_requests(spec: PodSpec) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for index, container in enumerate(spec.containers):
        _add(total, count_resources(container.resources.requests, f"spec.containers[{index}].resources.requests"))
    for index, container in enumerate(spec.init_containers):
        requests = count_resources(container.resources.requests, f"spec.initContainers[{index}].resources.requests")
        for name, amount in requests.items():
            total[name] = max(total.get(name, 0), amount)
    _add(total, count_resources(spec.overhead, "spec.overhead"))
    return total


def _add(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def upstream_pod_usage(pod: Pod) -> PodUsage:
    """Return a running pod's usage as upstream counts it: sidecars as init containers, no pod-level resources.

    Raises:
        FieldError: an amount of the pod cannot be read.
    """
    return PodUsage(_pod_requests(pod.spec), 0, 0, ())
