"""LimitRanges: the requests and limits that they fill in, and the pods and claims that they refuse.

Source: kubernetes plugin/pkg/admission/limitranger (v1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.amounts import pod_amounts
from podium.sandbox.errors import forbidden
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.quantities import canonical_text, parse_quantity
from podium.sandbox.resources import resource_named

Json = dict[str, Any]

_PODS, _CLAIMS = resource_named("pods"), resource_named("persistentvolumeclaims")
_GROUPS = {"containers": "container", "initContainers": "init container"}
_ANNOTATION = "kubernetes.io/limit-ranger"


def set_limit_defaults(pod: Json, lookup: Lookup) -> None:
    """Fill in the requests and limits that the pod's containers lack, in place, and say so in an annotation."""
    for limit_range in _limit_ranges(pod, lookup):
        defaults: dict[str, Json] = {"requests": {}, "limits": {}}
        for item in items_at(limit_range, "spec", "limits"):
            if item.get("type") == "Container":
                defaults["requests"] |= mapping_at(item, "defaultRequest")
                defaults["limits"] |= mapping_at(item, "default")
        changes = [
            change
            for group, title in _GROUPS.items()
            for container in items_at(pod, "spec", group)
            for change in _fill(container, title, defaults)
        ]
        if changes:
            annotations = mapping_at(pod, "metadata", "annotations")
            text = f"LimitRanger plugin set: {'; '.join(changes)}"
            pod["metadata"]["annotations"] = annotations | {_ANNOTATION: text}


def demand_pod_within(pod: Json, lookup: Lookup) -> None:
    """Refuse a pod that is outside of a LimitRange.

    Raises:
        ApiError: 403.
    """
    for limit_range in _limit_ranges(pod, lookup):
        reasons = [
            reason
            for item in items_at(limit_range, "spec", "limits")
            for requests, limits in _constrained_resources(pod["spec"], str(item.get("type")))
            for reason in _violations(item, requests, limits)
        ]
        if reasons:
            raise forbidden(_PODS, pod, _join(reasons))


def demand_claim_within(claim: Json, lookup: Lookup) -> None:
    """Refuse a claim that is outside of a LimitRange.

    Raises:
        ApiError: 403.
    """
    requests = mapping_at(claim, "spec", "resources", "requests")
    for limit_range in _limit_ranges(claim, lookup):
        reasons = [
            reason
            for item in items_at(limit_range, "spec", "limits")
            if item.get("type") == "PersistentVolumeClaim"
            for reason in (*_below(item, requests, {}), *_requests_above(item, requests))
        ]
        if reasons:
            raise forbidden(_CLAIMS, claim, _join(reasons))


def _limit_ranges(obj: Json, lookup: Lookup) -> list[Json]:
    return lookup.all_of("limitranges", obj["metadata"]["namespace"])


def _join(reasons: list[str]) -> str:
    distinct = list(dict.fromkeys(reasons))
    return f"[{', '.join(distinct)}]" if len(distinct) > 1 else distinct[0]


def _fill(container: Json, title: str, defaults: dict[str, Json]) -> Iterator[str]:
    """Set what the container lacks. Yields what was set."""
    resources = dict(mapping_at(container, "resources"))
    for field, noun in (("requests", "request"), ("limits", "limit")):
        container_amounts = mapping_at(resources, field)
        missing = {name: amount for name, amount in defaults[field].items() if name not in container_amounts}
        if missing:
            resources[field] = container_amounts | missing
            yield f"{', '.join(sorted(missing))} {noun} for {title} {container.get('name', '')}"
    container["resources"] = resources


def _constrained_resources(spec: Json, kind: str) -> Iterable[tuple[Json, Json]]:
    """Return the requests and limits to which items of that type apply."""
    if kind == "Pod":
        return [(pod_amounts(spec, "requests"), pod_amounts(spec, "limits"))]
    if kind != "Container":
        return []
    return [
        (mapping_at(container, "resources", "requests"), mapping_at(container, "resources", "limits"))
        for group in _GROUPS
        for container in items_at(spec, group)
    ]


def _violations(item: Json, requests: Json, limits: Json) -> Iterator[str]:
    yield from _below(item, requests, limits)
    yield from _above(item, requests, limits)
    yield from _ratio_violations(item, requests, limits)


def _below(item: Json, requests: Json, limits: Json) -> Iterator[str]:
    for name, limit_value in mapping_at(item, "min").items():
        least = f"minimum {name} usage per {item.get('type')} is {canonical_text(limit_value)}"
        request, limit = requests.get(name), limits.get(name)
        if request is None:
            yield f"{least}.  No request is specified"
        elif parse_quantity(request) < parse_quantity(limit_value):
            yield f"{least}, but request is {canonical_text(request)}"
        elif limit is not None and parse_quantity(limit) < parse_quantity(limit_value):
            yield f"{least}, but limit is {canonical_text(limit)}"


def _requests_above(item: Json, requests: Json) -> Iterator[str]:
    """Return what a claim, which has no limits, requests above the maximum."""
    for name, limit in mapping_at(item, "max").items():
        message = f"maximum {name} usage per {item.get('type')} is {canonical_text(limit)}"
        request = requests.get(name)
        if request is None:
            yield f"{message}.  No request is specified"
        elif parse_quantity(request) > parse_quantity(limit):
            yield f"{message}, but request is {canonical_text(request)}"


def _above(item: Json, requests: Json, limits: Json) -> Iterator[str]:
    for name, limit_value in mapping_at(item, "max").items():
        message = f"maximum {name} usage per {item.get('type')} is {canonical_text(limit_value)}"
        request, limit = requests.get(name), limits.get(name)
        if limit is None:
            yield f"{message}.  No limit is specified"
        elif parse_quantity(limit) > parse_quantity(limit_value):
            yield f"{message}, but limit is {canonical_text(limit)}"
        elif request is not None and parse_quantity(request) > parse_quantity(limit_value):
            yield f"{message}, but request is {canonical_text(request)}"


def _ratio_violations(item: Json, requests: Json, limits: Json) -> Iterator[str]:
    for name, limit_value in mapping_at(item, "maxLimitRequestRatio").items():
        message = f"{name} max limit to request ratio per {item.get('type')} is {canonical_text(limit_value)}"
        request, limit = (parse_quantity(amounts.get(name, "0")) for amounts in (requests, limits))
        if not request:
            yield f"{message}, but no request is specified or request is 0"
        elif not limit:
            yield f"{message}, but no limit is specified or limit is 0"
        elif limit / request > parse_quantity(limit_value):
            yield f"{message}, but provided ratio is {float(limit / request):f}"
