"""Amounts of resources, added and compared as Karpenter does.

Owns the arithmetic, and the text of amounts. Never changes its arguments.

Units: cpu in thousandths of a core, everything else as counted by its quantity.
Source: karpenter pkg/utils/resources/resources.go, v1.15.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from podium.objects.core import Pod
from podium.objects.meta import ResourceList
from podium.objects.requests import Requests, pod_requests_with_status
from podium.objects.resource_names import CPU, PODS


def requests_of(pod: Pod) -> Requests:
    """Return the requests of a pod, itself included as one of a node's pods."""
    return {**pod_requests_with_status(pod), PODS: 1}


def requests_of_all(pods: Iterable[Pod]) -> Requests:
    """Return the requests of pods together."""
    pods = tuple(pods)
    return {**total(*(pod_requests_with_status(pod) for pod in pods)), PODS: len(pods)}


def total(*amounts: Requests) -> Requests:
    """Return the sum, resource by resource."""
    result: dict[str, int] = {}
    for part in amounts:
        for name, amount in part.items():
            result[name] = result.get(name, 0) + amount
    return result


def less(amounts: Requests, amounts_taken: Requests) -> Requests:
    # A resource that a node does not have is no negative amount there: `fits` refuses everything where one is negative.
    """Return the amounts without others; resources that are only in the others do not count."""
    return {name: amount - amounts_taken.get(name, 0) for name, amount in amounts.items()}


def largest(amounts: Iterable[Requests]) -> Requests:
    """Return the largest amount of each resource."""
    result: dict[str, int] = {}
    for part in amounts:
        for name, amount in part.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result


def smallest(first: Requests, second: Requests) -> Requests:
    """Return the smaller amount of each resource that both have."""
    return {name: min(amount, second[name]) for name, amount in first.items() if name in second}


def quantities(amounts: Requests) -> ResourceList:
    """Return the amounts as the API's quantities, sorted by resource."""
    return {name: f"{amount}m" if name == CPU else str(amount) for name, amount in sorted(amounts.items())}


def amounts_text(amounts: Requests) -> str:
    """Return the amounts as JSON with quantities, sorted by resource."""
    return json.dumps(quantities(amounts), separators=(",", ":"))
