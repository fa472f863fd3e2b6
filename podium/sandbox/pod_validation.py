"""Validate what defaults and admission fill into pods: amounts against each other, and label keys against selectors.

Source: kubernetes pkg/apis/core/validation/validation.go (v1.36): validateResourceRequirements,
validatePodResourceConsistency, ValidateMatchLabelKeysAndMismatchLabelKeys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.sandbox.admission.label_keys import affinity_terms
from podium.sandbox.amounts import container_sums, is_hugepages
from podium.sandbox.errors import Cause
from podium.sandbox.fields import items_at, mapping_at, texts_at
from podium.sandbox.quantities import canonical_text, parse_quantity

Json = dict[str, Any]


def misfit_amounts(path: str, spec: Json) -> Iterator[Cause]:
    """Yield the requests that do not fit limits, and what containers have beyond the pod as a whole.

    Raises:
        ValueError: an amount is not a quantity.
    """
    for group in ("containers", "initContainers"):
        for index, container in enumerate(items_at(spec, group)):
            yield from _requests_beyond_limits(f"{path}.{group}[{index}].resources", mapping_at(container, "resources"))
    pod_resources = mapping_at(spec, "resources")
    if not pod_resources:
        return
    yield from _requests_beyond_limits(f"{path}.resources", pod_resources)
    requests, limits = mapping_at(pod_resources, "requests"), mapping_at(pod_resources, "limits")
    for name, total in container_sums(spec, "requests").items():
        if name in requests and parse_quantity(total) > parse_quantity(requests[name]):
            reason = f"must be greater than or equal to aggregate container requests of {total}"
            yield _invalid(f"{path}.resources.requests[{name}]", requests[name], reason)
    for index, container in enumerate(items_at(spec, "containers")):
        for name, limit in mapping_at(container, "resources", "limits").items():
            if name in limits and parse_quantity(limit) > parse_quantity(limits[name]):
                reason = f"must be less than or equal to pod limits of {canonical_text(limits[name])}"
                yield _invalid(f"{path}.resources.containers[{index}][{name}].limits", limit, reason)


def _requests_beyond_limits(path: str, resources: Json) -> Iterator[Cause]:
    limits = mapping_at(resources, "limits")
    for name, request in mapping_at(resources, "requests").items():
        if name not in limits:
            continue
        limit, requests_path = canonical_text(limits[name]), f"{path}.requests"
        if not _may_overcommit(name) and parse_quantity(request) != parse_quantity(limit):
            yield _invalid(requests_path, request, f"must be equal to {name} limit of {limit}")
        elif parse_quantity(request) > parse_quantity(limit):
            yield _invalid(requests_path, request, f"must be less than or equal to {name} limit of {limit}")


def _may_overcommit(name: str) -> bool:
    return ("/" not in name or "kubernetes.io/" in name) and not is_hugepages(name)


def _invalid(path: str, amount: object, reason: str) -> Cause:
    return Cause(path, f'Invalid value: "{canonical_text(amount)}": {reason}')


def misused_label_keys(path: str, spec: Json) -> Iterator[Cause]:
    """Yield the label keys that contradict a selector, into which they have been merged if the pod has such labels."""
    for term_path, term in affinity_terms(spec):
        yield from _label_keys(f"{path}.{term_path}", term)
    for index, constraint in enumerate(items_at(spec, "topologySpreadConstraints")):
        yield from _label_keys(f"{path}.topologySpreadConstraints[{index}]", constraint)


def _label_keys(path: str, term: Json) -> Iterator[Cause]:
    selector = term.get("labelSelector")
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if selector is None and texts_at(term, name):
            reason = "Forbidden: must not be specified when labelSelector is not set"
            yield Cause(f"{path}.{name}", reason, "FieldValueForbidden")
    keys = texts_at(term, "matchLabelKeys")
    labels = set(mapping_at(selector, "matchLabels"))
    for expression in items_at(selector, "matchExpressions"):
        key = str(expression.get("key", ""))
        if key in keys and key in labels:
            reason = f'Invalid value: "{key}": exists in both matchLabelKeys and labelSelector'
            yield Cause(f"{path}[{keys.index(key)}]", reason)
        labels.add(str(key))
    mismatched = texts_at(term, "mismatchLabelKeys")
    for index, key in enumerate(keys):
        if key in mismatched:
            reason = f'Invalid value: "{key}": exists in both matchLabelKeys and mismatchLabelKeys'
            yield Cause(f"{path}.matchLabelKeys[{index}]", reason)
