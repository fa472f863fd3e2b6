"""Applies RuntimeClasses: they add overhead, a node selector and tolerations to pods, and refuse conflicting pods.

Source: kubernetes plugin/pkg/admission/runtimeclass, pkg/util/tolerations, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.engine.derivation.control_objects import items_at, mapping_at
from podium.engine.manifests import Manifest


def with_runtime_class(spec: dict[str, Any], runtime_class: Manifest | None) -> dict[str, Any]:
    """Return the pod spec with the additions of its RuntimeClass; None adds nothing."""
    if runtime_class is None:
        return spec
    overhead = mapping_at(runtime_class, "overhead", "podFixed")
    selector = mapping_at(runtime_class, "scheduling", "nodeSelector")
    tolerations = items_at(runtime_class, "scheduling", "tolerations")
    if overhead:
        spec = {**spec, "overhead": dict(overhead)}
    if selector:
        spec = {**spec, "nodeSelector": {**mapping_at(spec, "nodeSelector"), **selector}}
    if tolerations:
        pod_tolerations = spec.get("tolerations")
        spec = {**spec, "tolerations": [*(pod_tolerations if isinstance(pod_tolerations, list) else ()), *tolerations]}
    return spec


def runtime_class_refusal(spec: Mapping[str, Any], runtime_class: Manifest | None) -> str:
    """Return why the API server refuses the pod, or "". An empty RuntimeClass stands for one that does not exist."""
    if runtime_class is None:
        return ""
    if not runtime_class:
        return f'pod rejected: RuntimeClass "{spec.get("runtimeClassName")}" not found'
    pod_overhead, class_overhead = mapping_at(spec, "overhead"), mapping_at(runtime_class, "overhead", "podFixed")
    if pod_overhead and class_overhead and pod_overhead != class_overhead:
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    selector = mapping_at(spec, "nodeSelector")
    for key, value in mapping_at(runtime_class, "scheduling", "nodeSelector").items():
        if selector.get(key, value) != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    return ""
