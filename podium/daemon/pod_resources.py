"""/metrics/resources: what each pod requests, and what it is limited to.

A replica that stands by answers with an empty page, so that what several replicas serve can be added up. A page is made
in short turns, between which the scheduler runs: it is not a consistent snapshot.

Cost: 2 us and 300 bytes for each pod and resource.
Source: kubernetes pkg/scheduler/metrics/resources/resources.go, cmd/kube-scheduler/app/server.go, v1.36.2.
Differs: a pod with an amount that cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final, TypeAlias

from aiohttp import web
from aiohttp.typedefs import Handler

from podium.lib.clock import Clock
from podium.lib.turns import Turns
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.quantity import Quantity
from podium.objects.requests import exact_limits, exact_requests
from podium.objects.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    STORAGE,
    is_attachable_volumes,
    is_hugepages,
)
from podium.telemetry import CONTENT_TYPE
from podium.telemetry.families import Family, Gauge, gauge, heading, label_text, number

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_REQUESTS: Final = gauge("kube_pod_resource_request", "What a pod requests of a resource, in its unit.", *_LABELS)
_LIMITS: Final = gauge("kube_pod_resource_limit", "What a pod is limited to of a resource, in its unit.", *_LABELS)
POD_RESOURCES: Final = (_REQUESTS, _LIMITS)
"""The families of the page; they hold no series."""

_BYTES: Final = frozenset({MEMORY, STORAGE, EPHEMERAL_STORAGE})
_PIECE_LINES: Final = 1000

_Amounts: TypeAlias = tuple[tuple[str, str, str], ...]
"""Resource, unit and amount, without those of 0."""


def pod_resources_page(pods: Callable[[], Iterable[Pod]], leader: Callable[[], str | None], clock: Clock) -> Handler:
    """Return the handler of the page.

    Args:
        pods: returns all pods, which may change while they are read.
        leader: the replica that schedules in place of this one; None if this process schedules.
    """

    async def show(request: web.Request) -> web.StreamResponse:
        """Return each pod's requests and limits as Prometheus text; nothing while another replica leads."""
        if leader() is not None:
            return web.Response(headers={"Content-Type": CONTENT_TYPE})
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        await response.prepare(request)
        for family, amounts_of in ((_REQUESTS, _requests), (_LIMITS, _limits)):
            async for piece in _pieces(family, pods(), amounts_of, clock):
                await response.write(piece)
        await response.write_eof()
        return response

    return show


async def _pieces(
    family: Family[Gauge], pods: Iterable[Pod], amounts_of: Callable[[PodSpec], _Amounts], clock: Clock
) -> AsyncIterator[bytes]:
    """Yield the text of one family, in pieces that are made in a turn each."""
    turns = Turns(clock)
    lines = [*heading(family.name, family.kind, family.help)]
    for pod in pods:
        # Upstream skips those that have ended only if they have a node.
        if not (pod.has_ended and pod.node_name):
            lines += _lines(family.name, pod, amounts_of(pod.spec))
        if len(lines) >= _PIECE_LINES:
            yield _text(lines)
            lines = []
        if turns.is_over():
            await turns.next()
    yield _text(lines)


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(name: str, pod: Pod, amounts: _Amounts) -> list[str]:
    metadata, spec = pod.metadata, pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    # The same for all resources of the pod.
    about = label_text(_LABELS[:5], (metadata.namespace, metadata.name, pod.node_name, spec.scheduler_name, priority))
    return [
        f"{name}{{{about},{label_text(_LABELS[5:], (resource, unit))}}} {amount}" for resource, unit, amount in amounts
    ]


@once_per_spec
def _requests(spec: PodSpec) -> _Amounts:
    return _amounts(exact_requests, spec)


@once_per_spec
def _limits(spec: PodSpec) -> _Amounts:
    return _amounts(exact_limits, spec)


def _amounts(exact: Callable[[PodSpec], Mapping[str, Quantity]], spec: PodSpec) -> _Amounts:
    try:
        amounts = exact(spec)
    except FieldError:
        return ()
    return tuple(
        (name, unit_of(name), number(amount.approximate)) for name, amount in amounts.items() if amount.unscaled
    )


def unit_of(resource: str) -> str:
    """Return the unit in which a resource is counted; empty for those of which only the name is known."""
    if resource == CPU:
        return "cores"
    if resource in _BYTES or is_hugepages(resource):
        return "bytes"
    return "integer" if is_attachable_volumes(resource) else ""
