"""Label keys of pod affinity and topology spread, merged into their selectors.

The scheduler reads only the selector of pod affinity. Without this step the pods of a rolling update would keep away
from those that they replace, and wait for ever.

Source: kubernetes pkg/registry/core/pod/strategy.go (v1.36); KEP-3633, KEP-3243.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.sandbox.fields import items_at, mapping_at, texts_at

Json = dict[str, Any]

_OPERATORS = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def merge_label_keys(spec: Json, labels: Json) -> None:
    """Merge the label keys of the pod's terms and constraints into their selectors, in place."""
    for _, term in affinity_terms(spec):
        _merge(term, labels, ("matchLabelKeys", "mismatchLabelKeys"))
    for constraint in items_at(spec, "topologySpreadConstraints"):
        _merge(constraint, labels, ("matchLabelKeys",))


def affinity_terms(spec: Json) -> Iterator[tuple[str, Json]]:
    """Yield the terms of pod affinity and anti-affinity, each with its path within the spec."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = mapping_at(spec, "affinity", kind)
        preferred_field = "preferredDuringSchedulingIgnoredDuringExecution"
        for index, item in enumerate(items_at(affinity, preferred_field)):
            yield f"affinity.{kind}.{preferred_field}[{index}].podAffinityTerm", mapping_at(item, "podAffinityTerm")
        required_field = "requiredDuringSchedulingIgnoredDuringExecution"
        for index, term in enumerate(items_at(affinity, required_field)):
            yield f"affinity.{kind}.{required_field}[{index}]", term


def _merge(term: Json, labels: Json, names: tuple[str, ...]) -> None:
    """Add a requirement for each key that the pod has as a label. A term without a selector matches nothing."""
    selector = term.get("labelSelector")
    if not isinstance(selector, dict):
        return
    requirements = [
        {"key": key, "operator": _OPERATORS[name], "values": [labels[key]]}
        for name in names
        for key in texts_at(term, name)
        if key in labels
    ]
    if requirements:
        selector["matchExpressions"] = [*items_at(selector, "matchExpressions"), *requirements]
