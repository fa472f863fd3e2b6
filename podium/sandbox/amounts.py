"""Sums the requests and the limits of a pod's containers.

Source: component-helpers resource/helpers.go (v0.36); KEP-753 (sidecars), KEP-2837 (pod-level resources).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.quantities import canonical_text, parse_quantity, sum_text

Json = dict[str, Any]


def container_sums(spec: Json, field: str) -> dict[str, str]:
    """Return the requests or limits of all containers together: init containers run one by one, sidecars go on.

    Raises:
        ValueError: an amount is not a quantity.
    """
    total: dict[str, str] = {}
    for container in items_at(spec, "containers"):
        total = _sum(total, mapping_at(container, "resources", field))
    sidecars: dict[str, str] = {}
    peak: dict[str, str] = {}
    for container in items_at(spec, "initContainers"):
        amounts = mapping_at(container, "resources", field)
        if container.get("restartPolicy") == "Always":
            total, sidecars = _sum(total, amounts), _sum(sidecars, amounts)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _sum(sidecars, amounts))
    return _larger(total, peak)


def pod_amounts(spec: Json, field: str) -> dict[str, str]:
    """Return the requests or limits of the pod as a whole: its own, else those of its containers together.

    Raises:
        ValueError: an amount is not a quantity.
    """
    pod_level = mapping_at(spec, "resources", field)
    return container_sums(spec, field) | {name: amount for name, amount in pod_level.items() if is_pod_level(name)}


def is_pod_level(name: str) -> bool:
    """Return whether a pod as a whole may request this resource."""
    return name in ("cpu", "memory") or is_hugepages(name)


def is_hugepages(name: str) -> bool:
    """Return whether this resource is huge pages."""
    return name.startswith("hugepages-")


def _sum(amounts: dict[str, str], addition: Json) -> dict[str, str]:
    return amounts | {
        name: sum_text([amounts[name], amount]) if name in amounts else canonical_text(amount)
        for name, amount in addition.items()
    }


def _larger(amounts: dict[str, str], other_amounts: dict[str, str]) -> dict[str, str]:
    none = Fraction(-1)
    return amounts | {
        name: amount
        for name, amount in other_amounts.items()
        if parse_quantity(amount) > (parse_quantity(amounts[name]) if name in amounts else none)
    }
