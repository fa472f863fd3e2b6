"""Requests for devices in place of extended resources that a node gets from devices, not from a device plugin.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from podium.devices.class_table import IMPLICIT_PREFIX
from podium.objects.claims import DeviceRequest, ExactDeviceRequest
from podium.objects.core import Container, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import Value
from podium.objects.quantity import parse
from podium.objects.requests import pod_requests
from podium.objects.resource_names import is_extended_resource


class RequestMapping(Value, frozen=True):
    """The request that provides a container with an extended resource."""

    container_name: str
    resource_name: str
    request_name: str


@once_per_spec
def extended_requests(spec: PodSpec) -> Mapping[str, int]:
    """Return the resources that the pod requests and that devices might back, and how much of each.

    Requests that cannot be parsed are those of a pod that NodeResourcesFit rejects; they count as none.
    """
    try:
        requests = pod_requests(spec)
    except FieldError:
        return {}
    return {name: amount for name, amount in requests.items() if amount and may_be_devices(name)}


def may_be_devices(resource: str) -> bool:
    """Return True if devices may back the resource: it is extended, or the implicit resource of a class."""
    return resource.startswith(IMPLICIT_PREFIX) or is_extended_resource(resource)


@dataclass(frozen=True, slots=True)
class _Need:
    """A request for so many devices."""

    name: str
    count: int


def requests_for(
    spec: PodSpec, classes: Mapping[str, str]
) -> tuple[tuple[DeviceRequest, ...], tuple[RequestMapping, ...]]:
    """Return the requests of the claim for extended resources, by name, and which container uses which of them.

    Args:
        classes: the device class of each resource that the node gets from devices.
    """
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource, class_name in sorted(classes.items()):
        needs, new_mappings = _requests_for_one(spec, resource)
        mappings += new_mappings
        for need in needs:
            exactly = ExactDeviceRequest(device_class_name=class_name, count=need.count)
            requests.append(DeviceRequest(name=need.name, exactly=exactly))
    return tuple(sorted(requests, key=lambda request: request.name)), tuple(mappings)


def _requests_for_one(spec: PodSpec, resource: str) -> tuple[list[_Need], list[RequestMapping]]:
    """Return the requests for one resource. Init containers that end share devices with later containers."""
    containers = (*spec.init_containers, *spec.containers)
    init_count = len(spec.init_containers)
    short_lived = [index for index, container in enumerate(spec.init_containers) if not container.is_sidecar]
    long_lived: dict[int, _Need] = {}
    mappings: list[RequestMapping] = []
    for index, container in enumerate(containers):
        if index >= init_count or container.is_sidecar:
            need, need_mappings = _need_of(index, container, resource, ())
            mappings += need_mappings
            if need is not None:
                long_lived[index] = need
    largest: _Need | None = None
    own_names: set[str] = set()
    short_mappings: list[RequestMapping] = []
    for index in short_lived:
        reusable = [need for owner, need in long_lived.items() if owner >= index]
        need, need_mappings = _need_of(index, containers[index], resource, reusable)
        short_mappings += need_mappings
        if need is not None:
            own_names.add(need.name)
            if largest is None or largest.count < need.count:
                largest = need
    if largest is None:
        return list(long_lived.values()), mappings + short_mappings
    mappings += (
        replace(mapping, request_name=largest.name) if mapping.request_name in own_names else mapping
        for mapping in short_mappings
    )
    return [largest, *long_lived.values()], mappings


def _need_of(
    index: int, container: Container, resource: str, reusable: Iterable[_Need]
) -> tuple[_Need | None, Sequence[RequestMapping]]:
    """Return the container's needs beyond the requests that it can reuse, and all requests that it uses."""
    requests = container.resources.requests
    count = parse(requests[resource]).int64_as_written if resource in requests else None
    if not count:
        return None, ()
    mappings: list[RequestMapping] = []
    for candidate in reusable:
        mappings.append(
            RequestMapping(container_name=container.name, resource_name=resource, request_name=candidate.name)
        )
        count -= candidate.count
        if count <= 0:
            return None, mappings
    need = _Need(f"container-{index}-request-{sorted(requests).index(resource)}", count)
    mapping = RequestMapping(container_name=container.name, resource_name=resource, request_name=need.name)
    return need, [*mappings, mapping]
