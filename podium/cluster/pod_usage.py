"""The usage that a pod adds to its node, computed once per spec.

Source: kubernetes pkg/scheduler/framework/types.go (PodInfo, NodeInfo), v1.36.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from podium.cluster.affinity_terms import pod_terms
from podium.config import Release
from podium.objects.core import Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.requests import PORTS_MAX, is_resized, nonzero_requests_on_node, requests_on_node
from podium.objects.unreadable import unread_field


class HostPort(NamedTuple):
    """A port taken on the node itself; `ip` is 0.0.0.0 for all addresses."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class PodUsage:
    """The resources that a pod uses on its node.

    Units: cpu in milli, everything else as counted by its quantity.

    Attributes:
        follows_from_spec: True if it is the usage of every pod with the same spec (`usual_usage`).
    """

    requests: Mapping[str, int]
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int
    host_ports: tuple[HostPort, ...]
    follows_from_spec: bool = field(default=False, compare=False)


@once_per_spec
def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of app containers and sidecars, up to the limit that is counted."""
    containers = (*spec.containers, *(container for container in spec.init_containers if container.is_sidecar))
    ports = itertools.islice((port for container in containers for port in container.ports), PORTS_MAX)
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for port in ports
        if port.host_port > 0
    )


def pod_usage(pod: Pod, *, by_container: bool = False) -> PodUsage:
    """Return the usage that the pod adds to its node.

    Args:
        by_container: see `podium.objects.requests`.

    Raises:
        FieldError: a quantity of the pod cannot be parsed.
    """
    if not is_resized(pod):
        return usual_usage(pod.spec)
    cpu_milli, memory_bytes = nonzero_requests_on_node(pod, by_container=by_container)
    requests = requests_on_node(pod, by_container=by_container)
    return PodUsage(requests, cpu_milli, memory_bytes, host_ports(pod.spec))


def pod_usage_in(release: Release) -> Callable[[Pod], PodUsage]:
    """Return `pod_usage` by the rules of a release."""
    return pod_usage if release.sums_resized_pods else partial(pod_usage, by_container=True)


def readable_pod_usage(pod: Pod) -> PodUsage:
    """Return the usage that the cache counts: the pod's `pod_usage`, without requests that cannot be parsed."""
    try:
        return pod_usage(pod)
    except FieldError:
        return pod_usage_without_requests(pod)


def pod_usage_without_requests(pod: Pod) -> PodUsage:
    """Return the usage of a pod whose requests cannot be parsed: one pod, and its host ports."""
    return PodUsage({}, 0, 0, host_ports(pod.spec))


def unread_part(pod: Pod) -> FieldError | None:
    """Return a field of a running pod that other pods depend on but that cannot be enforced. Ignores requests."""
    return unread_field(pod) or (pod_terms(pod).not_enforced if pod.spec.affinity is not None else None)


@once_per_spec
def usual_usage(spec: PodSpec) -> PodUsage:
    """Return the usage of a pod that is not being resized. Raises: FieldError: a quantity cannot be parsed."""
    pod = Pod(spec=spec)
    cpu_milli, memory_bytes = nonzero_requests_on_node(pod)
    return PodUsage(requests_on_node(pod), cpu_milli, memory_bytes, host_ports(spec), follows_from_spec=True)
