"""Merges label keys of pod affinity and topology spread into their selectors, as the API server does on creation.

The scheduler also reads `matchLabelKeys` of spread constraints itself; the merged requirement changes nothing there. Of
pod affinity it reads only the selector, so that without this step a rolling update would wait for the old pods.

Source: kubernetes pkg/registry/core/pod/strategy.go, v1.36.2; KEP-3633.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TERM_LISTS: Final = (
    ("requiredDuringSchedulingIgnoredDuringExecution", ""),
    ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
)
"""The lists of terms in pod affinity, and the field of their items that has the term, "" for the item itself."""
_OPERATORS: Final = {"matchLabelKeys": "In", "mismatchLabelKeys": "NotIn"}


def with_label_keys(spec: dict[str, Any], labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod spec with the label keys of its terms merged into their selectors."""
    affinity = spec.get("affinity")
    if isinstance(affinity, Mapping):
        kinds = {
            kind: _merge_lists(affinity[kind], labels)
            for kind in ("podAffinity", "podAntiAffinity")
            if affinity.get(kind)
        }
        if kinds:
            spec = {**spec, "affinity": {**affinity, **kinds}}
    constraints = spec.get("topologySpreadConstraints")
    if isinstance(constraints, list) and constraints:
        spec = {**spec, "topologySpreadConstraints": [_merge_keys(constraint, labels) for constraint in constraints]}
    return spec


def _merge_lists(affinity: Any, labels: Mapping[str, Any]) -> Any:
    if not isinstance(affinity, Mapping):
        return affinity
    result = dict(affinity)
    for name, inner in TERM_LISTS:
        terms = affinity.get(name)
        if not isinstance(terms, list):
            continue
        result[name] = [
            {**term, inner: _merge_keys(term.get(inner), labels)}
            if inner and isinstance(term, Mapping)
            else _merge_keys(term, labels)
            for term in terms
        ]
    return result


def _merge_keys(term: Any, labels: Mapping[str, Any]) -> Any:
    """Return the term with a requirement for each of its keys that the pod has as a label, if it has a selector."""
    if not isinstance(term, Mapping) or not isinstance(selector := term.get("labelSelector"), Mapping):
        return term
    expressions = selector.get("matchExpressions") or []
    requirements = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in _OPERATORS.items()
        if isinstance(keys := term.get(name), Sequence) and not isinstance(keys, str)
        for key in keys
        if isinstance(key, str) and key in labels
    ]
    missing = [requirement for requirement in requirements if requirement not in expressions]
    return {**term, "labelSelector": {**selector, "matchExpressions": [*expressions, *missing]}} if missing else term
