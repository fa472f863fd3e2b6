"""Validates the spec of a pod after admission has filled it in, as the API server does.

Source: kubernetes v1.36.2, pkg/apis/core/validation/validation.go (ValidateResourceRequirements,
ValidateMatchLabelKeysAndMismatchLabelKeys, ValidateMatchLabelKeysInTopologySpread).
Differs: only finds errors that admission may cause, and those of label keys; other invalid fields are not refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from podium.engine.derivation.control_objects import items_at, mapping_at
from podium.engine.derivation.label_keys import TERM_LISTS
from podium.engine.derivation.quotas import written_amount
from podium.objects.core import PodSpec
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError, canonical_text, parse
from podium.objects.requests import container_requests

_IN_BOTH: Final = "exists in both matchLabelKeys and labelSelector"


def invalid_fields(original: Mapping[str, Any], spec: Mapping[str, Any], labels: Mapping[str, Any]) -> list[str]:
    """Return the errors, each with its field.

    Args:
        original: the spec as it was given, whose label keys have not been merged yet.
        labels: the pod's labels; a key that is not among them is not merged, and so cannot be a duplicate.
    """
    return [*_label_keys(original, labels), *_requests_above_limits(spec), *_pod_level(spec)]


def _pod_level(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield errors where the pod's requests exceed its limits, or the containers' amounts exceed the pod's."""
    path, resources = "spec.resources", mapping_at(spec, "resources")
    requests, limits = mapping_at(resources, "requests"), mapping_at(resources, "limits")
    containers = items_at(spec, "containers")
    try:
        for resource, request in requests.items():
            if resource in limits and parse(request) > parse(limits[resource]):
                rule = f"must be less than or equal to {resource} limit of {canonical_text(limits[resource])}"
                yield f'{path}.requests: Invalid value: "{canonical_text(request)}": {rule}'
        content = {"containers": containers, "initContainers": items_at(spec, "initContainers")}
        for resource, total in container_requests(msgspec.convert(content, PodSpec)).items() if requests else ():
            if resource in requests and total > parse(requests[resource]):
                least = f"aggregate container requests of {written_amount(resource, total.nano_value)}"
                value = canonical_text(requests[resource])
                yield (
                    f'{path}.requests[{resource}]: Invalid value: "{value}": must be greater than or equal to {least}'
                )
        for index, container in enumerate(containers):
            for resource, limit in mapping_at(container, "resources", "limits").items():
                if resource in limits and parse(limit) > parse(limits[resource]):
                    rule = f"must be less than or equal to pod limits of {canonical_text(limits[resource])}"
                    limits_path = f"{path}.containers[{index}][{resource}].limits"
                    yield f'{limits_path}: Invalid value: "{canonical_text(limit)}": {rule}'
    except (QuantityError, FieldError, msgspec.ValidationError):
        # What cannot be read is reported with its field when the pod is.
        return


def _requests_above_limits(spec: Mapping[str, Any]) -> Iterator[str]:
    for group in ("initContainers", "containers"):
        for index, container in enumerate(items_at(spec, group)):
            limits = mapping_at(container, "resources", "limits")
            for resource, request in mapping_at(container, "resources", "requests").items():
                try:
                    is_above = resource in limits and parse(request) > parse(limits[resource])
                except QuantityError:
                    continue
                if is_above:
                    yield (
                        f'spec.{group}[{index}].resources.requests: Invalid value: "{canonical_text(request)}": '
                        f"must be less than or equal to {resource} limit of {canonical_text(limits[resource])}"
                    )


def _label_keys(spec: Mapping[str, Any], labels: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        for name, inner in TERM_LISTS:
            for index, item in enumerate(items_at(spec, "affinity", kind, name)):
                path = f"spec.affinity.{kind}.{name}[{index}]" + (f".{inner}" if inner else "")
                term = mapping_at(item, inner) if inner else item
                for keys in ("matchLabelKeys", "mismatchLabelKeys"):
                    yield from _without_selector(term, keys, f"{path}.{keys}")
                yield from _duplicates(term, path, labels)
    for index, constraint in enumerate(items_at(spec, "topologySpreadConstraints")):
        path = f"spec.topologySpreadConstraints[{index}].matchLabelKeys"
        yield from _without_selector(constraint, "matchLabelKeys", path)
        yield from _duplicates(constraint, path, labels)


def _without_selector(term: Mapping[str, Any], keys: str, path: str) -> Iterator[str]:
    if term.get("labelSelector") is None and _texts(term, keys):
        yield f"{path}: Forbidden: must not be specified when labelSelector is not set"


def _duplicates(term: Mapping[str, Any], path: str, labels: Mapping[str, Any]) -> Iterator[str]:
    """Yield errors for keys that the term's selector also has, and for keys of both lists."""
    selector = mapping_at(term, "labelSelector")
    selected_keys = {
        *mapping_at(selector, "matchLabels"),
        *(expression.get("key") for expression in items_at(selector, "matchExpressions")),
    }
    keys = _texts(term, "matchLabelKeys")
    for index, key in enumerate(keys):
        if key in selected_keys and key in labels:
            yield f'{path}[{index}]: Invalid value: "{key}": {_IN_BOTH}'
    mismatched = _texts(term, "mismatchLabelKeys")
    for index, key in enumerate(keys):
        if key in mismatched:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield f'{path}.matchLabelKeys[{index}]: Invalid value: "{key}": {problem}'


def _texts(term: Mapping[str, Any], name: str) -> list[str]:
    keys = term.get(name)
    return [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
