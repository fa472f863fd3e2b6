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
    """The amount in the resource's units, rounded up.

    Raises:
        FieldError: it cannot be read.
    """
    try:
        return milli_value(raw) if resource == CPU else value(raw)
    except QuantityError as error:
        raise FieldError(path, str(error)) from error


def counted(amounts: ResourceList, path: str) -> dict[str, int]:
    """The amounts of the resources that are compared with nodes. The resource `pods` is left out.

    Raises:
        FieldError: one cannot be read.
    """
    return {
        name: whole_units(name, raw, f"{path}[{name}]") for name, raw in amounts.items() if is_counted_resource(name)
    }


def demands(request: ResourceList) -> tuple[Demand, ...]:
    """What each replica requests of the resources that are compared with nodes.

    Raises:
        FieldError: an amount cannot be read.
    """
    return tuple(Demand(name, amount) for name, amount in counted(request, "resourceRequest").items() if amount > 0)


@once_per_spec
def _taken(spec: PodSpec) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for index, container in enumerate(spec.containers):
        _add(total, counted(container.resources.requests, f"spec.containers[{index}].resources.requests"))
    for index, container in enumerate(spec.init_containers):
        requests = counted(container.resources.requests, f"spec.initContainers[{index}].resources.requests")
        for name, amount in requests.items():
            total[name] = max(total.get(name, 0), amount)
    _add(total, counted(spec.overhead, "spec.overhead"))
    return total


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def upstream_pod_usage(pod: Pod) -> PodUsage:
    """A running pod's usage as upstream counts it: sidecars count like init containers, pod-level resources do not.

    Raises:
        FieldError: an amount of the pod cannot be read.
    """
    return PodUsage(_taken(pod.spec), 0, 0, ())
