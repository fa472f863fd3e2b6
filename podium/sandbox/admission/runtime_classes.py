"""RuntimeClasses: the overhead, node selector and tolerations that they add to pods.

Source: kubernetes plugin/pkg/admission/runtimeclass, pkg/util/tolerations (v1.36).
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.admission.lookup import Lookup
from podium.sandbox.errors import ApiError, forbidden
from podium.sandbox.fields import items_at, mapping_at
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.resources import resource_named

Json = dict[str, Any]

_PODS = resource_named("pods")


def apply_runtime_class(pod: Json, lookup: Lookup) -> None:
    """Add what the pod's RuntimeClass defines to its spec, in place.

    Raises:
        ApiError: 403, the class does not exist, or contradicts the overhead or node selector of the pod.
    """
    runtime_class = _class_of(pod, lookup)
    if runtime_class is None:
        return
    spec = pod["spec"]
    if overhead := mapping_at(runtime_class, "overhead", "podFixed"):
        pod_overhead = mapping_at(spec, "overhead")
        if pod_overhead and not _is_same(pod_overhead, overhead):
            raise _other_overhead(pod)
        spec["overhead"] = dict(overhead)
    if selector := mapping_at(runtime_class, "scheduling", "nodeSelector"):
        pod_overhead = mapping_at(spec, "nodeSelector")
        for key, value in selector.items():
            if pod_overhead.get(key, value) != value:
                raise forbidden(
                    _PODS,
                    pod,
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {pod_overhead[key]}",
                )
        spec["nodeSelector"] = pod_overhead | selector
    if "scheduling" in runtime_class:
        tolerations = [*items_at(spec, "tolerations"), *items_at(runtime_class, "scheduling", "tolerations")]
        spec["tolerations"] = _merge(tolerations)


def demand_overhead_of_class(pod: Json, lookup: Lookup) -> None:
    """Refuse a pod whose overhead is not that of its RuntimeClass.

    Raises:
        ApiError: 403.
    """
    pod_overhead = mapping_at(pod, "spec", "overhead")
    if not pod_overhead:
        return
    defined = mapping_at(_class_of(pod, lookup), "overhead", "podFixed")
    if not defined:
        reason = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise forbidden(_PODS, pod, reason)
    if not _is_same(pod_overhead, defined):
        raise _other_overhead(pod)


def _class_of(pod: Json, lookup: Lookup) -> Json | None:
    name = pod["spec"].get("runtimeClassName")
    if name is None:
        return None
    runtime_class = lookup.named("runtimeclasses", str(name))
    if runtime_class is None:
        raise forbidden(_PODS, pod, f'pod rejected: RuntimeClass "{name}" not found')
    return runtime_class


def _other_overhead(pod: Json) -> ApiError:
    return forbidden(_PODS, pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def _is_same(amounts: Json, other_amounts: Json) -> bool:
    try:
        values, other_values = (
            {name: parse_quantity(amount) for name, amount in quantities.items()}
            for quantities in (amounts, other_amounts)
        )
    except ValueError:
        return amounts == other_amounts
    return values == other_values


def _merge(tolerations: list[Json]) -> list[Json]:
    """Return the tolerations without those that another one covers; of equal ones the first stays."""
    result: list[Json] = []
    for index, toleration in enumerate(tolerations):
        is_covered = any(_covers(candidate, toleration) for candidate in result) or any(
            candidate != toleration and _covers(candidate, toleration) for candidate in tolerations[index + 1 :]
        )
        if not is_covered:
            result.append(toleration)
    return result


def _covers(wide: Json, toleration: Json) -> bool:
    """Return whether one toleration tolerates all that another one does."""
    if wide == toleration:
        return True
    wide_operator = wide.get("operator") or "Equal"
    wide_key, wide_effect = wide.get("key") or "", wide.get("effect") or ""
    if toleration.get("key", "") != wide_key and (wide_key or wide_operator != "Exists"):
        return False
    if toleration.get("effect", "") != wide_effect and wide_effect:
        return False
    limit_s = wide.get("tolerationSeconds")
    if wide_effect == "NoExecute" and limit_s is not None:
        own_s = toleration.get("tolerationSeconds")
        if own_s is None or own_s > limit_s:
            return False
    if wide_operator == "Equal":
        return toleration.get("operator") == "Equal" and toleration.get("value", "") == wide.get("value", "")
    return bool(wide_operator == "Exists")
