"""Changes a pod's total request for a resource, as a JSON Patch of its containers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from podium.insight.json_patch import Operation, operation, pointer
from podium.objects.amounts import amount_text
from podium.objects.core import Container, Pod, PodSpec, ResourceRequirements
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity
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
    """Return the least total request that leaves every container something of what it requests."""
    spec = pod.spec
    running, starting = _parts(spec, resource)
    least = _least(resource)
    total = sum(least for part in running if part.amount)
    for part, sidecars in starting:
        sidecar_total = sum(least for sidecar in running if sidecar.path in sidecars and sidecar.amount)
        # Init containers run one by one beside the sidecars started before them, so the largest moment counts
        # (KEP-753).
        total = max(total, sidecar_total + (least if part.amount else 0))
    of_pod = spec.resources
    if of_pod is not None and _amount(resource, of_pod.requests.get(resource)):
        total = max(total, least)
    return total + _amount(resource, spec.overhead.get(resource))


def is_indispensable(resource: str) -> bool:
    """Return whether a container cannot run without any of the resource: huge pages and devices."""
    return _least(resource) > 0


def _least(resource: str) -> int:
    """Return the smallest useful request: one page or one device, but 0 for CPU, which is shared without a request."""
    if resource in _OVERCOMMITTED:
        return 0
    if resource.startswith(_HUGE_PAGES):
        with suppress(ValueError):
            return max(parse(resource.removeprefix(_HUGE_PAGES)).value, 1)
    return 1


def resize(pod: Pod, resource: str, total: int) -> tuple[Operation, ...] | None:
    """Return the patch after which the pod requests this total of the resource; None if there is no such patch.

    A reduction takes from the largest requests first, and leaves every container something of what it requests if the
    total is enough for that. An increase adds to the first container that has a request.

    Raises:
        FieldError: a request cannot be read.
    """
    spec = pod.spec
    available = total - _amount(resource, spec.overhead.get(resource))
    if available < 0:
        return None
    least = _least(resource) if total >= least_request(pod, resource) else 0
    operations: list[Operation] = []
    of_pod = spec.resources
    if of_pod is not None and resource in of_pod.requests:
        operations += _set(_Part(("spec", "resources"), of_pod, 0), resource, available)
        # The pod-level request was enough; containers keep theirs (KEP-2837).
        if filter_requests(spec).get(resource, 0) < total:
            return tuple(operations)
    running, starting = _parts(spec, resource)
    amounts = {part.path: part.amount for part in running}
    excess = sum(amounts.values()) - available
    if excess < 0 and filter_requests(spec).get(resource, 0) < total:
        first = next((part for part in running if part.amount), None)
        if first is None:
            return None
        amounts[first.path] -= excess
    # The largest first: it can spare most.
    for part in sorted(running, key=lambda part: -part.amount):
        if excess > 0:
            reduction = min(excess, max(part.amount - least, 0))
            amounts[part.path] -= reduction
            excess -= reduction
    for part in running:
        if amounts[part.path] != part.amount:
            operations += _set(part, resource, amounts[part.path])
    for part, sidecars in starting:
        room = available - sum(amounts[path] for path in sidecars)
        if part.amount > room:
            operations += _set(part, resource, max(room, 0))
    return tuple(operations)


def _parts(spec: PodSpec, resource: str) -> tuple[list[_Part], list[tuple[_Part, Sequence[tuple[str | int, ...]]]]]:
    """Return the requests while the pod runs, and those of init containers, each with the sidecars started earlier."""
    running = [
        _part(("spec", "containers", index), container, resource) for index, container in enumerate(spec.containers)
    ]
    starting: list[tuple[_Part, Sequence[tuple[str | int, ...]]]] = []
    sidecars: list[tuple[str | int, ...]] = []
    for index, container in enumerate(spec.init_containers):
        part = _part(("spec", "initContainers", index), container, resource)
        if container.is_sidecar:
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
    operations = [operation("add", pointer(*part.path, "requests", resource), text)]
    # Where overcommitting is not allowed, a limit must equal its request.
    if resource in part.resources.limits and resource not in _OVERCOMMITTED:
        operations.append(operation("add", pointer(*part.path, "limits", resource), text))
    return operations


def _amount(resource: str, raw: RawQuantity | None) -> int:
    if raw is None:
        return 0
    try:
        quantity = parse(raw)
    except ValueError as error:
        raise FieldError(resource, str(error)) from error
    return quantity.milli_value if resource == CPU else quantity.value
