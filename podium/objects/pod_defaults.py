"""What an API server fills in where a pod says nothing, as far as it decides where the pod goes.

For pods that no API server has seen: those in files, and those that a template stands for. Fills gaps only; what is
malformed is left to those who read it.

Source: kubernetes pkg/apis/core/v1/defaults.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_pod_defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The pod spec without gaps, as parsed from JSON or YAML."""
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
    """What has a limit but no request requests its limit."""
    if not isinstance(resources, dict):
        return resources
    limits, requests = (resources.get(name) for name in ("limits", "requests"))
    if not isinstance(limits, dict) or not limits:
        return resources
    return {**resources, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}
