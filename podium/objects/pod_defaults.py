"""The defaults that an API server sets in a pod, as far as they affect where the pod goes.

For pods that no API server has admitted: those in files and those made from a pod template. Only missing fields are
set; malformed ones are left for the decoder to report.

Source: kubernetes pkg/apis/core/v1/defaults.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_pod_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The pod spec, as parsed from JSON or YAML, with its defaults set."""
    filled = dict(spec)
    for group in ("containers", "initContainers"):
        if isinstance(containers := filled.get(group), list):
            filled[group] = [_container(each, host_network=filled.get("hostNetwork") is True) for each in containers]
    if filled.get("resources"):
        filled["resources"] = _requests_from_limits(filled["resources"])
    return filled


def _container(container: Any, *, host_network: bool) -> Any:
    if not isinstance(container, dict):
        return container
    filled = {**container, "resources": _requests_from_limits(container.get("resources") or {})}
    ports = container.get("ports")
    if host_network and isinstance(ports, list):
        filled["ports"] = [
            {"hostPort": port["containerPort"], **port} if isinstance(port, dict) and "containerPort" in port else port
            for port in ports
        ]
    return filled


def _requests_from_limits(resources: Any) -> Any:
    """The requests; a resource with a limit but no request gets the limit as its request."""
    if not isinstance(resources, dict):
        return resources
    limits, requests = (resources.get(name) for name in ("limits", "requests"))
    if not isinstance(limits, dict) or not limits:
        return resources
    return {**resources, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}
