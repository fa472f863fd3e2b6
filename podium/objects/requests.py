"""A pod's requests and a node's allocatable resources, as integers by resource name.

Owns the arithmetic of requests: containers, sidecars, init containers, pod level, overhead, in-place resize. Quantities
are added exactly and rounded up once, at the end. Never compares requests with what is free.

Units: cpu in thousandths of a core, everything else as counted by its quantity (bytes, devices).
While a pod is resized in place, what it asks for, what it is promised and what it has may all differ. It counts with
the highest of these three totals; `by_container` counts the highest of the three of each container, as older releases.

Invariant: results are shared between pods of one spec and must not be changed.
Source: component-helpers resource/helpers.go and kubernetes pkg/scheduler/framework/types.go, v1.36.2 and v1.37.2.
Differs: for fractions of negative amounts and where a sum leaves the range of int64, upstream's answer depends on which
amounts it compared on the way; here it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from podium.objects.core import Container, ContainerStatus, Node, Pod, PodSpec, PodStatus, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity, ResourceList
from podium.objects.quantity import Quantity, QuantityError, milli_value, parse, value
from podium.objects.resource_names import CPU, MEMORY, PODS, is_counted_resource, is_pod_level_resource

Requests: TypeAlias = Mapping[str, int]
"""Amounts by resource name; a name that was listed with 0 is present, one that was not listed is absent."""

# Otherwise pods without requests would all be scored onto one node: they would never make it look fuller.
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024

# Limits up to which sums are fast enough, for a pod as large as an API server stores.
CONTAINERS_MAX: Final = 3_000
REQUESTS_MAX: Final = 5_000
PORTS_MAX: Final = 10_000

_Exact: TypeAlias = dict[str, Quantity]
_DEFAULTS: Final = {
    CPU: Quantity(DEFAULT_CPU_MILLI, -3, wide=False),
    MEMORY: Quantity(DEFAULT_MEMORY_BYTES, 0, wide=False),
}
_NOTHING: Final = Quantity(0, 0, wide=False)


# ---------------------------------------------------------------- the uses


@once_per_spec
def pod_requests(spec: PodSpec) -> Requests:
    """Return everything the spec requests, pod-level values and overhead included, under any resource name.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return _integers(_spec_total(spec))


def exact_requests(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the requests of `pod_requests` unrounded.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return _spec_total(spec)


def exact_limits(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the limits of the pod as a whole, unrounded. Overhead is added only to resources that have a limit.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    total = _containers_total(spec, _spec_limits, {})
    if spec.resources is not None:
        pod_level = exact_amounts(spec.resources.limits, "spec.resources.limits")
        total.update((name, amount) for name, amount in pod_level.items() if is_pod_level_resource(name))
    for name, amount in exact_amounts(spec.overhead, "spec.overhead").items():
        if name in total and total[name].unscaled:
            total[name] += amount
    return total


@once_per_spec
def filter_requests(spec: PodSpec) -> Requests:
    """Return what must be free on a node for an incoming pod: the counted resources of `pod_requests`, never below 0.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return {name: max(amount, 0) for name, amount in pod_requests(spec).items() if is_counted_resource(name)}


@once_per_spec
def scoring_requests(spec: PodSpec) -> Requests:
    """Return the usage that the resource scoring strategies assume for an incoming pod.

    Each container that does not list cpu or memory counts with 100m or 200 MiB. Pod-level values are ignored, as by
    upstream's scorer of NodeResourcesFit.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return _integers(_with_overhead(_containers_total(spec, _spec_requests, _DEFAULTS), spec))


def pod_requests_with_status(pod: Pod, *, by_container: bool = False) -> Requests:
    """Return the requests of `pod_requests`, or what a pod still holds while it is resized in place.

    NodeResourcesBalancedAllocation assumes this usage for an incoming pod.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return _integers(_status_total(pod, {}, by_container=by_container)) if is_resized(pod) else pod_requests(pod.spec)


def requests_on_node(pod: Pod, *, by_container: bool = False) -> Requests:
    """Return the amounts that a pod on a node uses: the counted resources of `pod_requests_with_status`.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    if is_resized(pod):
        return _counted_amounts(pod_requests_with_status(pod, by_container=by_container))
    return _counted_requests(pod.spec)


def nonzero_requests_on_node(pod: Pod, *, by_container: bool = False) -> tuple[int, int]:
    """Return the cpu (milli) and memory (bytes) usage that scoring assumes for a pod on a node.

    As `requests_on_node`, but each container without a value counts with 100m or 200 MiB; with pod-level requests only
    for a resource that the pod's total does not list at all.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    return _nonzero(pod, by_container=by_container) if is_resized(pod) else _nonzero_requests(pod.spec)


def whole_amounts(amounts: ResourceList, path: str) -> Requests:
    """Return these amounts as integers, under any resource name.

    Args:
        path: the path of the amounts, for errors.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    return _integers(exact_amounts(amounts, path))


def node_allocatable(node: Node) -> tuple[Requests, int]:
    """Return the node's allocatable resources that are counted, and its number of pods.

    Raises:
        FieldError: a quantity cannot be parsed, or there are too many.
    """
    amounts: dict[str, int] = {}
    allowed_pods = 0
    for name, raw in node.status.allocatable.items():
        try:
            amount = milli_value(raw) if name == CPU else value(raw)
        except QuantityError as error:
            raise FieldError(f"status.allocatable[{name}]", str(error)) from error
        if name == PODS:
            allowed_pods = amount
        elif is_counted_resource(name):
            amounts[name] = amount
    return amounts, allowed_pods


@once_per_spec
def _counted_requests(spec: PodSpec) -> Requests:
    return _counted_amounts(pod_requests(spec))


@once_per_spec
def _nonzero_requests(spec: PodSpec) -> tuple[int, int]:
    return _nonzero(Pod(spec=spec), by_container=False)


def _counted_amounts(amounts: Requests) -> Requests:
    return {name: amount for name, amount in amounts.items() if is_counted_resource(name)}


def _nonzero(pod: Pod, *, by_container: bool) -> tuple[int, int]:
    total = _status_total(pod, {}, by_container=by_container)
    defaults: Mapping[str, Quantity] = _DEFAULTS
    if _sets_pod_level(pod.spec):
        defaults = {name: default for name, default in _DEFAULTS.items() if name not in total}
    if defaults:
        total = _status_total(pod, defaults, by_container=by_container)
    return total.get(CPU, _NOTHING).milli_value, total.get(MEMORY, _NOTHING).value


# ---------------------------------------------------------------- sums

_RequestsOf: TypeAlias = Callable[[Container, str], _Exact]
"""The requests of one container, given the path of that container."""


def _spec_requests(container: Container, path: str) -> _Exact:
    return exact_amounts(container.resources.requests, f"{path}.resources.requests")


def _spec_limits(container: Container, path: str) -> _Exact:
    return exact_amounts(container.resources.limits, f"{path}.resources.limits")


def _spec_total(spec: PodSpec) -> _Exact:
    total = _containers_total(spec, _spec_requests, {})
    if _sets_pod_level(spec):
        assert spec.resources is not None
        pod_level = exact_amounts(spec.resources.requests, "spec.resources.requests")
        total.update((name, amount) for name, amount in pod_level.items() if is_pod_level_resource(name))
    return _with_overhead(total, spec)


def _containers_total(spec: PodSpec, requests_of: _RequestsOf, defaults: Mapping[str, Quantity]) -> _Exact:
    """Return the highest amount that the pod needs at any time, resource by resource.

    App containers and sidecars run together; before that each init container runs beside the sidecars started so far.
    """
    _refuse_crowds(spec)
    total: _Exact = {}
    for index, container in enumerate(spec.containers):
        _add(total, {**defaults, **requests_of(container, f"spec.containers[{index}]")})
    sidecars: _Exact = {}
    greediest_init: _Exact = {}
    for index, container in enumerate(spec.init_containers):
        requests = {**defaults, **requests_of(container, f"spec.initContainers[{index}]")}
        if container.is_sidecar:
            _add(total, requests)
            _add(sidecars, requests)
            _raise_to(greediest_init, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(greediest_init, requests)
    _raise_to(total, greediest_init)
    return total


def _refuse_crowds(spec: PodSpec) -> None:
    containers = ports = 0
    requests = len(spec.overhead) + (0 if spec.resources is None else len(spec.resources.requests))
    for group in (spec.containers, spec.init_containers):
        containers += len(group)
        for container in group:
            requests += max(len(container.resources.requests), len(container.resources.limits))
            ports += len(container.ports)
    if containers > CONTAINERS_MAX:
        raise _crowd("spec.containers", f"{containers} containers", CONTAINERS_MAX)
    if requests > REQUESTS_MAX:
        raise _crowd("spec.containers[].resources.requests", f"{requests} requests", REQUESTS_MAX)
    if ports > PORTS_MAX:
        raise _crowd("spec.containers[].ports", f"{ports} ports", PORTS_MAX)


def _crowd(path: str, amount: str, limit: int) -> FieldError:
    return FieldError(path, f"{amount}, at most {limit} are counted")


def _with_overhead(total: _Exact, spec: PodSpec) -> _Exact:
    if spec.overhead:
        _add(total, exact_amounts(spec.overhead, "spec.overhead"))
    return total


def _sets_pod_level(spec: PodSpec) -> bool:
    return spec.resources is not None and any(is_pod_level_resource(name) for name in spec.resources.requests)


def container_requests(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the exact amounts that the containers request together at most, without pod-level values and overhead.

    Raises: as `pod_requests`.
    """
    return _containers_total(spec, _spec_requests, {})


def container_limits(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the containers' limits, combined like `container_requests`."""
    return _containers_total(spec, _spec_limits, {})


# ---------------------------------------------------------------- in-place resize


def is_resized(pod: Pod) -> bool:
    """Return True if the amounts in the status may differ from those in the spec."""
    status = pod.status
    if status.resources is not None and (status.allocated_resources or _sets_pod_level(pod.spec)):
        return True
    if not status.container_statuses and not status.init_container_statuses:
        return False
    if _resize_is_infeasible(status):
        return True
    status_of = _statuses(status)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        amounts, (_, reported_status) = container.resources.requests, status_of.get(container.name, ("", None))
        if reported_status is None:
            continue
        if reported_status.allocated_resources not in ({}, amounts):
            return True
        if reported_status.resources is not None and reported_status.resources.requests != amounts:
            return True
    return False


def _statuses(status: PodStatus) -> dict[str, tuple[str, ContainerStatus]]:
    """Return path and status of each container by its name; init containers win, as upstream."""
    return {
        container_status.name: (f"status.{field}[{index}]", container_status)
        for field, statuses in (
            ("containerStatuses", status.container_statuses),
            ("initContainerStatuses", status.init_container_statuses),
        )
        for index, container_status in enumerate(statuses)
    }


def _status_total(pod: Pod, defaults: Mapping[str, Quantity], *, by_container: bool) -> _Exact:
    spec, status = pod.spec, pod.status
    is_infeasible = _resize_is_infeasible(status)
    total = (_container_maxima if by_container else _highest_total)(pod, defaults, is_infeasible=is_infeasible)
    if _sets_pod_level(spec):
        assert spec.resources is not None
        pod_level = exact_amounts(spec.resources.requests, "spec.resources.requests")
        total_held = pod_level
        if status.resources is not None:
            total_held = _highest({} if is_infeasible else pod_level, *_pod_level_amounts(status))
        for name in pod_level if by_container else total_held:
            if is_pod_level_resource(name):
                total[name] = total_held.get(name, _NOTHING)
    return _with_overhead(total, spec)


def _pod_level_amounts(status: PodStatus) -> tuple[_Exact, _Exact]:
    """Return what the pod as a whole has, and what it is promised."""
    assert status.resources is not None
    return (
        exact_amounts(status.resources.requests, "status.resources.requests"),
        exact_amounts(status.allocated_resources, "status.allocatedResources"),
    )


def _highest_total(pod: Pod, defaults: Mapping[str, Quantity], *, is_infeasible: bool) -> _Exact:
    """Return the highest of the pod's totals: asked for, promised and held."""
    spec, status = pod.spec, pod.status
    statuses = _statuses(status)

    def spec_size(container: Container, path: str) -> _Exact:
        return {} if is_infeasible else _spec_requests(container, path)

    def allocated_size(container: Container, path: str) -> _Exact:
        status_path, container_status = statuses.get(container.name, ("", None))
        if container_status is None or not container_status.allocated_resources:
            return spec_size(container, path)
        return exact_amounts(container_status.allocated_resources, f"{status_path}.allocatedResources")

    def actual_size(container: Container, path: str) -> _Exact:
        status_path, container_status = statuses.get(container.name, ("", None))
        if container_status is None or container_status.resources is None or not container_status.resources.requests:
            return allocated_size(container, path)
        return exact_amounts(container_status.resources.requests, f"{status_path}.resources.requests")

    asked_total = {} if is_infeasible else _containers_total(spec, spec_size, defaults)
    if status.allocated_resources and status.resources is not None and status.resources.requests:
        return _highest(asked_total, *_pod_level_amounts(status))
    if not statuses and not is_infeasible:
        # As before a pod starts: all three are what the spec asks for.
        return _highest(asked_total)
    return _highest(
        asked_total, _containers_total(spec, allocated_size, defaults), _containers_total(spec, actual_size, defaults)
    )


def _container_maxima(pod: Pod, defaults: Mapping[str, Quantity], *, is_infeasible: bool) -> _Exact:
    """Return the total of the highest amounts of each container."""
    statuses = _statuses(pod.status)

    def requests_of(container: Container, path: str) -> _Exact:
        requests = _spec_requests(container, path)
        status_path, container_status = statuses.get(container.name, ("", None))
        if container_status is None or container_status.resources is None:
            return requests
        if path.startswith("spec.initContainers") and not container.is_sidecar:
            return requests
        return _highest(
            {} if is_infeasible else requests,
            exact_amounts(container_status.resources.requests, f"{status_path}.resources.requests"),
            exact_amounts(container_status.allocated_resources, f"{status_path}.allocatedResources"),
        )

    return _containers_total(pod.spec, requests_of, defaults)


def _highest(*amounts: _Exact) -> _Exact:
    """Return the maximum of each resource."""
    result: _Exact = {}
    for requests in amounts:
        _raise_to(result, requests)
    return result


def _resize_is_infeasible(status: PodStatus) -> bool:
    pending = status.condition("PodResizePending")
    return pending is not None and pending.reason == "Infeasible"


# ---------------------------------------------------------------- exact amounts


def exact_amounts(amounts: ResourceList, path: str) -> dict[str, Quantity]:
    """Return these amounts unrounded, under any resource name.

    Args:
        path: the path of the amounts, for errors.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    return {name: _parse(raw, f"{path}[{name}]") for name, raw in amounts.items()}


def _parse(raw: RawQuantity, path: str) -> Quantity:
    try:
        return parse(raw)
    except QuantityError as error:
        raise FieldError(path, str(error)) from error


def _add(total: _Exact, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        former = total.get(name)
        total[name] = amount if former is None else former + amount


def _raise_to(total: _Exact, floor: Mapping[str, Quantity]) -> None:
    for name, amount in floor.items():
        former = total.get(name)
        if former is None or amount > former:
            total[name] = amount


def _integers(total: _Exact) -> Requests:
    return {name: amount.milli_value if name == CPU else amount.value for name, amount in total.items()}
