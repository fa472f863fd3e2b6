"""Calculations that several plugins of scheduler-plugins share: requests of a pod, QoS class, scaling of scores.

Owns pure functions of a pod or of an array of scores. Never reads the cluster.

Source: sigs.k8s.io/scheduler-plugins pkg/util, pkg/noderesources and pkg/networkaware (2026-08).
Source: pkg/apis/core/v1/helper/qos/qos.go, v1.36.2.
Differs: differences of scores that leave the range of int64 are computed exactly; upstream's wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from podium.cluster import IntArray
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec, ResourceRequirements, once_per_spec
from podium.objects.meta import ResourceList
from podium.objects.quantity import INT64_MAX, Quantity
from podium.objects.requests import Requests, exact_amounts, whole_amounts
from podium.objects.resource_names import CPU, MEMORY, PODS, is_counted_resource

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_AmountT = TypeVar("_AmountT", int, Quantity)


def is_native_resource(name: str) -> bool:
    """Return False for a device-like resource, whose name has a domain other than kubernetes.io."""
    return "/" not in name or _NATIVE_DOMAIN in name


# ---------------------------------------------------------------- requests


@once_per_spec
def simple_requests(spec: PodSpec) -> Requests:
    """Return the spec's requests as scheduler-plugins computes them: sidecars count like ordinary init containers.

    For each resource: the sum over the containers, or the largest init container's request if that is higher, plus the
    overhead. Pod-level requests are ignored, and so are resources that no node is checked for.

    Units: cpu in thousandths of a core, others in their base unit; amounts are rounded up before they are added.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    total = _pod_requests(spec, whole_amounts)
    return {name: amount for name, amount in total.items() if name == PODS or is_counted_resource(name)}


@once_per_spec
def effective_requests(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the requests that `simple_requests` computes, but unrounded and with every resource name.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    return _pod_requests(spec, exact_amounts)


def _pod_requests(
    spec: PodSpec, amounts_of: Callable[[ResourceList, str], Mapping[str, _AmountT]]
) -> dict[str, _AmountT]:
    total: dict[str, _AmountT] = {}

    def add(amounts: Mapping[str, _AmountT]) -> None:
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount

    for index, container in enumerate(spec.containers):
        add(amounts_of(container.resources.requests, f"spec.containers[{index}].resources.requests"))
    for index, container in enumerate(spec.init_containers):
        path = f"spec.initContainers[{index}].resources.requests"
        for name, amount in amounts_of(container.resources.requests, path).items():
            if name not in total or amount > total[name]:
                total[name] = amount
    add(amounts_of(spec.overhead, "spec.overhead"))
    return total


# ---------------------------------------------------------------- QoS


def qos_class(pod: Pod) -> str:
    """Return Guaranteed, Burstable or BestEffort: the class in the pod's status, or else that of its spec.

    Raises:
        FieldError: a quantity cannot be parsed.
    """
    return pod.status.qos_class or _computed_qos_class(pod.spec)


@once_per_spec
def _computed_qos_class(spec: PodSpec) -> str:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    has_all_limits = True
    for path, resources in _qos_resources(spec):
        _add_positive(requests, resources.requests, f"{path}.requests")
        has_all_limits &= _add_positive(limits, resources.limits, f"{path}.limits") == {CPU, MEMORY}
    if not requests and not limits:
        return BEST_EFFORT
    requests_match_limits = requests.keys() == limits.keys() and not any(
        amount > limits[name] or limits[name] > amount for name, amount in requests.items()
    )
    return GUARANTEED if has_all_limits and requests_match_limits else BURSTABLE


def _qos_resources(spec: PodSpec) -> Iterator[tuple[str, ResourceRequirements]]:
    """Yield requests and limits with their paths: those at pod level if there are any, or else each container's."""
    if spec.resources is not None:
        yield "spec.resources", spec.resources
        return
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield f"spec.{field}[{index}].resources", container.resources


def _add_positive(total: dict[str, Quantity], amounts: ResourceList, path: str) -> set[str]:
    """Add the positive amounts of cpu and memory to the total, and return their names."""
    cpu_and_memory = {name: raw for name, raw in amounts.items() if name in (CPU, MEMORY)}
    positive = {name: amount for name, amount in exact_amounts(cpu_and_memory, path).items() if amount.unscaled > 0}
    for name, amount in positive.items():
        total[name] = total[name] + amount if name in total else amount
    return set(positive)


# ---------------------------------------------------------------- scores


def min_max(scores: IntArray, lowest: int = 0) -> IntArray:
    """Scale the scores to `lowest`..MAX_NODE_SCORE; equal scores all become `lowest`.

    Shape: as `scores`.
    """
    distances, spread = _distances(scores)
    if not spread:
        return np.full_like(scores, lowest)
    if spread > INT64_MAX // fwk.MAX_NODE_SCORE:
        distances = distances.astype(object)
    return (distances * (fwk.MAX_NODE_SCORE - lowest) // spread).astype(np.int64) + lowest


def reverse_min_max(costs: IntArray) -> IntArray:
    """Scale the costs so that the lowest becomes MAX_NODE_SCORE and the highest 0; equal ones become MAX_NODE_SCORE.

    Costs that are all 0 stay 0.

    Shape: as `costs`.
    """
    if not costs.any():
        return costs
    distances, spread = _distances(costs)
    if not spread:
        return np.full_like(costs, fwk.MAX_NODE_SCORE)
    return fwk.MAX_NODE_SCORE - (float(fwk.MAX_NODE_SCORE) * distances.astype(float) / float(spread)).astype(np.int64)


def _distances(scores: IntArray) -> tuple[np.ndarray[Any, Any], int]:
    """Return each score's distance from the lowest score, and the largest distance."""
    if not len(scores):
        return scores, 0
    lowest, highest = int(scores.min()), int(scores.max())
    if highest - lowest > INT64_MAX:
        scores = scores.astype(object)
    return scores - lowest, highest - lowest
