"""LimitRanges: the requests and limits that they fill in, and the pods that they refuse.

Source: kubernetes plugin/pkg/admission/limitranger, and SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go,
v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from podium.engine.derivation.control_objects import items_at, mapping_at
from podium.engine.manifests import Manifest
from podium.objects.core import PodSpec
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError, canonical_text, parse
from podium.objects.requests import container_limits, container_requests
from podium.objects.resource_names import is_pod_level_resource

_GROUPS: Final = ("containers", "initContainers")
_NANO: Final = 10**9


def with_limit_defaults(spec: dict[str, Any], limit_ranges: Iterable[Manifest]) -> dict[str, Any]:
    """The pod spec with the missing requests and limits of its containers filled in."""
    for limit_range in limit_ranges:
        defaults: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
        for item in map(_completed, items_at(limit_range, "spec", "limits")):
            if item.get("type") == "Container":
                defaults["requests"].update(mapping_at(item, "defaultRequest"))
                defaults["limits"].update(mapping_at(item, "default"))
        if defaults["requests"] or defaults["limits"]:
            spec = {**spec, **{group: _filled(spec[group], defaults) for group in _GROUPS if spec.get(group)}}
    return spec


def limit_range_refusals(spec: Mapping[str, Any], limit_ranges: Iterable[Manifest]) -> str:
    """Why LimitRanges refuse the pod; "" if they do not, or if an amount cannot be read."""
    try:
        reasons = [
            reason
            for limit_range in limit_ranges
            for item in map(_completed, items_at(limit_range, "spec", "limits"))
            for requests, limits in _constrained(spec, str(item.get("type")))
            for reason in _violations(item, requests, limits)
        ]
    except (QuantityError, FieldError, msgspec.ValidationError):
        return ""
    return _joined(reasons)


def claim_refusals(claim: Manifest, limit_ranges: Iterable[Manifest]) -> str:
    """Why LimitRanges refuse a claim to storage; "" if they do not, or if an amount cannot be read."""
    requests = mapping_at(claim, "spec", "resources", "requests")
    try:
        reasons = [
            reason
            for limit_range in limit_ranges
            for item in items_at(limit_range, "spec", "limits")
            if item.get("type") == "PersistentVolumeClaim"
            for reason in (*_below(item, requests, {}), *_above(item, requests))
        ]
    except QuantityError:
        return ""
    return _joined(reasons)


def _joined(reasons: Sequence[str]) -> str:
    return f"[{', '.join(reasons)}]" if len(reasons) > 1 else "".join(reasons)


def _completed(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item with the defaults that the API server sets: from max to default to defaultRequest, then from min."""
    if item.get("type") != "Container":
        return item
    limits = {**mapping_at(item, "max"), **mapping_at(item, "default")}
    requests = {**mapping_at(item, "min"), **limits, **mapping_at(item, "defaultRequest")}
    return {**item, "default": limits, "defaultRequest": requests}


def _filled(containers: Any, defaults: Mapping[str, Mapping[str, Any]]) -> Any:
    if not isinstance(containers, list):
        return containers
    return [
        {
            **container,
            "resources": {
                **resources,
                **{name: {**defaults[name], **mapping_at(resources, name)} for name in defaults},
            },
        }
        if isinstance(container, dict) and isinstance(resources := container.get("resources") or {}, dict)
        else container
        for container in containers
    ]


def _constrained(spec: Mapping[str, Any], kind: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The requests and limits to which items of that type apply."""
    if kind == "Container":
        for group in _GROUPS:
            for container in items_at(spec, group):
                yield mapping_at(container, "resources", "requests"), mapping_at(container, "resources", "limits")
    elif kind == "Pod":
        yield _of_pod(spec, "requests", container_requests), _of_pod(spec, "limits", container_limits)


def _of_pod(spec: Mapping[str, Any], name: str, total: Callable[[PodSpec], Mapping[str, Any]]) -> Mapping[str, Any]:
    """What the pod requests, or is limited to, as a whole."""
    typed = msgspec.convert({group: spec.get(group) or [] for group in _GROUPS}, PodSpec)
    sums = {resource: f"{amount.nano_value}n" for resource, amount in total(typed).items()}
    whole = mapping_at(spec, "resources", name)
    return {**sums, **{resource: amount for resource, amount in whole.items() if is_pod_level_resource(resource)}}


def _violations(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    yield from _below(item, requests, limits)
    yield from _above(item, requests, limits)
    yield from _ratio_violations(item, requests, limits)


def _below(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    kind = item.get("type")
    for resource, enforced in mapping_at(item, "min").items():
        least = f"minimum {resource} usage per {kind} is {canonical_text(enforced)}"
        request, limit = requests.get(resource), limits.get(resource)
        if request is None:
            yield f"{least}.  No request is specified"
        elif parse(enforced) > parse(request):
            yield f"{least}, but request is {canonical_text(request)}"
        elif limit is not None and parse(enforced) > parse(limit):
            yield f"{least}, but limit is {canonical_text(limit)}"


def _above(
    item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """What is above the maximum. A claim has no limits, so that its requests must be stated, a container its limits."""
    stated, name = (requests, "request") if limits is None else (limits, "limit")
    for resource, enforced in mapping_at(item, "max").items():
        most = f"maximum {resource} usage per {item.get('type')} is {canonical_text(enforced)}"
        request = requests.get(resource)
        if resource not in stated:
            yield f"{most}.  No {name} is specified"
        elif parse(stated[resource]) > parse(enforced):
            yield f"{most}, but {name} is {canonical_text(stated[resource])}"
        elif request is not None and parse(request) > parse(enforced):
            yield f"{most}, but request is {canonical_text(request)}"


def _ratio_violations(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    for resource, enforced in mapping_at(item, "maxLimitRequestRatio").items():
        most = f"{resource} max limit to request ratio per {item.get('type')} is {canonical_text(enforced)}"
        request, limit = (
            parse(amounts[resource]).nano_value if resource in amounts else 0 for amounts in (requests, limits)
        )
        if not request:
            yield f"{most}, but no request is specified or request is 0"
        elif not limit:
            yield f"{most}, but no limit is specified or limit is 0"
        elif limit * _NANO > parse(enforced).nano_value * request:
            yield f"{most}, but provided ratio is {limit / request:f}"
