"""Changing how much of a resource a pod requests in total, as a JSON Patch of its containers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from podium.insight.json_patch import Operation, operation, pointer
from podium.objects.amounts import amount_text
from podium.objects.core import Container, Pod, PodSpec, RawQuantity, ResourceRequirements
from podium.objects.errors import FieldError
from podium.objects.quantity import parse
from podium.objects.requests import filter_requests
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY

_OVERCOMMITTED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""The resources whose limits may be above the requests."""
_HUGE_PAGES: Final = "hugepages-"


class _Part(NamedTuple):
    """The request of one container, or of the pod as a whole."""

    path: tuple[str | int, ...]
    resources: ResourceRequirements
    amount: int


def least_request(pod: Pod, resource: str) -> int:
    """The least total to which the pod's request can be lowered: no container that requests any is left without it."""
    spec = pod.spec
    running, starting = _parts(spec, resource)
    least = _least(resource)
    needed = sum(least for part in running if part.amount)
    for part, before in starting:
        beside = sum(least for other in running if other.path in before and other.amount)
        needed = max(needed, beside + (least if part.amount else 0))
    whole = spec.resources
    if whole is not None and _amount(resource, whole.requests.get(resource)):
        needed = max(needed, least)
    return needed + _amount(resource, spec.overhead.get(resource))


def is_indispensable(resource: str) -> bool:
    """Whether a container that requests the resource cannot do without any of it: huge pages and devices."""
    return _least(resource) > 0


def _least(resource: str) -> int:
    """The smallest request that gives a container something: a page or a device; CPU it gets without any."""
    if resource in _OVERCOMMITTED:
        return 0
    if resource.startswith(_HUGE_PAGES):
        with suppress(ValueError):
            return max(parse(resource.removeprefix(_HUGE_PAGES)).value, 1)
    return 1


def resized(pod: Pod, resource: str, total: int) -> tuple[Operation, ...] | None:
    """The patch after which the pod requests this total of the resource; None if there is no such patch.

    A reduction takes from the largest requests first, and leaves every container something of what it requests if the
    total is enough for that. An increase adds to the first container that has a request.

    Raises:
        FieldError: a request cannot be read.
    """
    spec = pod.spec
    left = total - _amount(resource, spec.overhead.get(resource))
    if left < 0:
        return None
    least = _least(resource) if total >= least_request(pod, resource) else 0
    found: list[Operation] = []
    whole = spec.resources
    if whole is not None and resource in whole.requests:
        found += _set(_Part(("spec", "resources"), whole, 0), resource, left)
        if filter_requests(spec).get(resource, 0) < total:
            return tuple(found)
    running, starting = _parts(spec, resource)
    amounts = {part.path: part.amount for part in running}
    excess = sum(amounts.values()) - left
    if excess < 0 and filter_requests(spec).get(resource, 0) < total:
        first = next((part for part in running if part.amount), None)
        if first is None:
            return None
        amounts[first.path] -= excess
    for part in sorted(running, key=lambda part: -part.amount):
        if excess > 0:
            taken = min(excess, max(part.amount - least, 0))
            amounts[part.path] -= taken
            excess -= taken
    for part in running:
        if amounts[part.path] != part.amount:
            found += _set(part, resource, amounts[part.path])
    for part, before in starting:
        room = left - sum(amounts[path] for path in before)
        if part.amount > room:
            found += _set(part, resource, max(room, 0))
    return tuple(found)


def _parts(spec: PodSpec, resource: str) -> tuple[list[_Part], list[tuple[_Part, Sequence[tuple[str | int, ...]]]]]:
    """The requests that hold while the pod runs, and those of init containers with the sidecars started before."""
    running = [_part(("spec", "containers", at), each, resource) for at, each in enumerate(spec.containers)]
    starting: list[tuple[_Part, Sequence[tuple[str | int, ...]]]] = []
    sidecars: list[tuple[str | int, ...]] = []
    for at, each in enumerate(spec.init_containers):
        part = _part(("spec", "initContainers", at), each, resource)
        if each.is_sidecar:
            running.append(part)
            sidecars.append(part.path)
        else:
            starting.append((part, tuple(sidecars)))
    return running, starting


def _part(path: tuple[str | int, ...], container: Container, resource: str) -> _Part:
    amount = _amount(resource, container.resources.requests.get(resource))
    return _Part((*path, "resources"), container.resources, amount)


def _set(part: _Part, resource: str, amount: int) -> list[Operation]:
    text = amount_text(resource, amount)
    found = [operation("add", pointer(*part.path, "requests", resource), text)]
    if resource in part.resources.limits and resource not in _OVERCOMMITTED:
        found.append(operation("add", pointer(*part.path, "limits", resource), text))
    return found


def _amount(resource: str, raw: RawQuantity | None) -> int:
    if raw is None:
        return 0
    try:
        quantity = parse(raw)
    except ValueError as error:
        raise FieldError(resource, str(error)) from error
    return quantity.milli_value if resource == CPU else quantity.value
