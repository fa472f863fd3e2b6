"""LimitRanges: the requests and limits that they fill in, and the pods that they refuse.

Source: kubernetes v1.36.2, plugin/pkg/admission/limitranger, and SetDefaults_LimitRangeItem in
pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    """Return the pod spec with the missing requests and limits of its containers filled in."""
    for limit_range in limit_ranges:
        defaults: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
        for item in map(_complete, items_at(limit_range, "spec", "limits")):
            if item.get("type") == "Container":
                defaults["requests"].update(mapping_at(item, "defaultRequest"))
                defaults["limits"].update(mapping_at(item, "default"))
        if defaults["requests"] or defaults["limits"]:
            # The first range to set an amount keeps it: the next one only fills in what is still missing.
            spec = {**spec, **{group: _fill(spec[group], defaults) for group in _GROUPS if spec.get(group)}}
    return spec


def limit_range_refusals(spec: Mapping[str, Any], limit_ranges: Iterable[Manifest]) -> str:
    """Return why LimitRanges refuse the pod; "" if they do not, or if an amount cannot be read."""
    try:
        reasons = [
            reason
            for limit_range in limit_ranges
            for item in map(_complete, items_at(limit_range, "spec", "limits"))
            for requests, limits in _amounts_of_type(spec, str(item.get("type")))
            for reason in _violations(item, requests, limits)
        ]
    except (QuantityError, FieldError, msgspec.ValidationError):
        # The pod cannot be decoded either, and that error names the field.
        return ""
    return join_reasons(reasons)


def claim_refusals(claim: Manifest, limit_ranges: Iterable[Manifest]) -> str:
    """Return why LimitRanges refuse a claim to storage; "" if they do not, or if an amount cannot be read."""
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
    return join_reasons(reasons)


def join_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons as the API server writes them: each different one once, several in brackets."""
    different = list(dict.fromkeys(reasons))
    return f"[{', '.join(different)}]" if len(different) > 1 else "".join(different)


def _complete(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the item's defaults: `default` falls back to `max`, and `defaultRequest` to `default`, then to `min`."""
    if item.get("type") != "Container":
        return item
    limits = {**mapping_at(item, "max"), **mapping_at(item, "default")}
    requests = {**mapping_at(item, "min"), **limits, **mapping_at(item, "defaultRequest")}
    return {**item, "default": limits, "defaultRequest": requests}


def _fill(containers: Any, defaults: Mapping[str, Mapping[str, Any]]) -> Any:
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


def _amounts_of_type(spec: Mapping[str, Any], kind: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the requests and limits to which items of that type apply."""
    if kind == "Container":
        for group in _GROUPS:
            for container in items_at(spec, group):
                yield mapping_at(container, "resources", "requests"), mapping_at(container, "resources", "limits")
    elif kind == "Pod":
        yield _of_pod(spec, "requests", container_requests), _of_pod(spec, "limits", container_limits)


def _of_pod(spec: Mapping[str, Any], name: str, total: Callable[[PodSpec], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the requests, or the limits, of the whole pod."""
    pod_spec = msgspec.convert({group: spec.get(group) or [] for group in _GROUPS}, PodSpec)
    # As quantities, not sums of floats: a range compares exactly.
    sums = {resource: f"{amount.nano_value}n" for resource, amount in total(pod_spec).items()}
    amounts = mapping_at(spec, "resources", name)
    return {**sums, **{resource: amount for resource, amount in amounts.items() if is_pod_level_resource(resource)}}


def _violations(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    yield from _below(item, requests, limits)
    yield from _above(item, requests, limits)
    yield from _ratio_violations(item, requests, limits)


def _below(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    kind = item.get("type")
    for resource, minimum in mapping_at(item, "min").items():
        least = f"minimum {resource} usage per {kind} is {canonical_text(minimum)}"
        request, limit = requests.get(resource), limits.get(resource)
        if request is None:
            yield f"{least}.  No request is specified"
        elif parse(minimum) > parse(request):
            yield f"{least}, but request is {canonical_text(request)}"
        elif limit is not None and parse(minimum) > parse(limit):
            yield f"{least}, but limit is {canonical_text(limit)}"


def _above(
    item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """Yield the violations of the maximum. Containers must state limits; claims, which have none, requests."""
    stated, name = (requests, "request") if limits is None else (limits, "limit")
    for resource, maximum in mapping_at(item, "max").items():
        rule = f"maximum {resource} usage per {item.get('type')} is {canonical_text(maximum)}"
        request = requests.get(resource)
        # A maximum needs a limit, since a container without one may use any amount.
        if resource not in stated:
            yield f"{rule}.  No {name} is specified"
        elif parse(stated[resource]) > parse(maximum):
            yield f"{rule}, but {name} is {canonical_text(stated[resource])}"
        elif request is not None and parse(request) > parse(maximum):
            yield f"{rule}, but request is {canonical_text(request)}"


def _ratio_violations(item: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[str]:
    for resource, ratio in mapping_at(item, "maxLimitRequestRatio").items():
        rule = f"{resource} max limit to request ratio per {item.get('type')} is {canonical_text(ratio)}"
        request, limit = (
            parse(amounts[resource]).nano_value if resource in amounts else 0 for amounts in (requests, limits)
        )
        if not request:
            yield f"{rule}, but no request is specified or request is 0"
        elif not limit:
            yield f"{rule}, but no limit is specified or limit is 0"
        elif limit * _NANO > parse(ratio).nano_value * request:
            yield f"{rule}, but provided ratio is {limit / request:f}"
