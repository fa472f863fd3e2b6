"""The defaults that an API server sets in a pod, as far as they affect where the pod goes.

For pods that no API server has admitted: those in files and those made from a pod template. Only missing fields are
set; malformed ones are left for the decoder to report.

Source: kubernetes pkg/apis/core/v1/defaults.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podium.objects.core import PodSpec
from podium.objects.errors import FieldError
from podium.objects.quantity import Quantity
from podium.objects.requests import container_limits, container_requests
from podium.objects.resource_names import CPU, MEMORY, is_hugepages, is_pod_level_resource

_NANO_PER_UNIT: Final = 10**9


def with_pod_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod spec, as parsed from JSON or YAML, with its defaults set."""
    document = dict(spec)
    for group in ("containers", "initContainers"):
        if isinstance(containers := document.get(group), list):
            document[group] = [
                _container(container, host_network=document.get("hostNetwork") is True) for container in containers
            ]
    if isinstance(resources := document.get("resources"), dict) and resources:
        document["resources"] = _pod_level(resources, document)
    return document


def _pod_level(resources: Mapping[str, Any], spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod-level resources with their defaults.

    A hugepages limit defaults to the containers' sum. If there is any limit, the requests of cpu and memory default to
    the containers' sums, and what is still missing then to the limits.
    """
    limits, requests = ({**_amounts(resources, name)} for name in ("limits", "requests"))
    if not limits and not requests:
        return resources
    try:
        pod_spec = msgspec.convert({name: spec.get(name) or [] for name in ("containers", "initContainers")}, PodSpec)
        sums, limit_sums = container_requests(pod_spec), container_limits(pod_spec)
    except (msgspec.ValidationError, FieldError):
        return resources
    for name, amount in limit_sums.items():
        if is_hugepages(name) and name not in requests:
            limits.setdefault(name, _text(amount))
    if limits:
        for name, amount in sums.items():
            if name in (CPU, MEMORY):
                requests.setdefault(name, _text(amount))
        requests = {**{name: amount for name, amount in limits.items() if is_pod_level_resource(name)}, **requests}
    amounts_by_kind = {"limits": limits, "requests": requests}
    return {**resources, **{name: amounts for name, amounts in amounts_by_kind.items() if amounts}}


def _amounts(resources: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    amounts = resources.get(name)
    return amounts if isinstance(amounts, Mapping) else {}


def _text(amount: Quantity) -> str:
    units, nanos = divmod(amount.nano_value, _NANO_PER_UNIT)
    return str(units) if not nanos else f"{amount.nano_value}n"


def _container(container: Any, *, host_network: bool) -> Any:
    if not isinstance(container, dict):
        return container
    document = {**container, "resources": _requests_from_limits(container.get("resources") or {})}
    ports = container.get("ports")
    if host_network and isinstance(ports, list):
        document["ports"] = [
            {"hostPort": port["containerPort"], **port} if isinstance(port, dict) and "containerPort" in port else port
            for port in ports
        ]
    return document


def _requests_from_limits(resources: Any) -> Any:
    """Return the requests; a resource with a limit but no request gets the limit as its request."""
    if not isinstance(resources, dict):
        return resources
    limits, requests = (resources.get(name) for name in ("limits", "requests"))
    if not isinstance(limits, dict) or not limits:
        return resources
    return {**resources, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}
