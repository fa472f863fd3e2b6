"""Resource models: their validation, and the grade of each node.

Source: karmada pkg/modeling/modeling.go, pkg/controllers/status/cluster_status_controller.go,
pkg/apis/cluster/{mutation,validation}, v1.18.
Differs: models without ranges are an error; upstream indexes beyond the last grade and panics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.estimator.amounts import exact
from podium.estimator.cluster_objects import AllocatableModeling, ResourceModel, ResourceModelRange
from podium.objects.core import Node
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity
from podium.objects.quantity import INT64_MAX, Quantity, quantity_format
from podium.objects.resource_names import CPU, PODS

_GIB: Final = 1 << 30
_CPU_BOUNDS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, INT64_MAX)
_MEMORY_BOUNDS: Final = (0, *(gib * _GIB for gib in (4, 16, 32, 64, 128, 256, 512, 1024)), INT64_MAX)


def default_models() -> tuple[ResourceModel, ...]:
    """Return the nine default grades, for a cluster without resource models."""
    bounds = zip(_CPU_BOUNDS, _CPU_BOUNDS[1:], _MEMORY_BOUNDS, _MEMORY_BOUNDS[1:], strict=False)
    return tuple(
        ResourceModel(
            grade=grade,
            ranges=(
                ResourceModelRange(name=CPU, min=str(cpu), max=str(cpu_max)),
                ResourceModelRange(name="memory", min=_memory(memory), max=_memory(memory_max)),
            ),
        )
        for grade, (cpu, cpu_max, memory, memory_max) in enumerate(bounds)
    )


def _memory(amount_bytes: int) -> str:
    return f"{amount_bytes // _GIB}Gi" if amount_bytes < INT64_MAX and amount_bytes else str(amount_bytes)


def standardise(models: Iterable[ResourceModel]) -> tuple[ResourceModel, ...]:
    """Return the models sorted by grade, with the first minimum set to 0 and the last maximum to MaxInt64."""
    models_by_grade = sorted(models, key=lambda model: model.grade)
    result = []
    for index, model in enumerate(models_by_grade):
        ranges = tuple(
            ResourceModelRange(
                name=model_range.name,
                min="0" if index == 0 else model_range.min,
                max=str(INT64_MAX) if index == len(models_by_grade) - 1 else model_range.max,
            )
            for model_range in model.ranges
        )
        result.append(ResourceModel(grade=model.grade, ranges=ranges))
    return tuple(result)


def fault_of(models: Sequence[ResourceModel]) -> str | None:
    """Return the first fault of the models, in upstream's words, or None if they are valid.

    Args:
        models: sorted by grade.

    Raises:
        FieldError: a bound cannot be read.
    """
    for index, model in enumerate(models):
        previous = models[index - 1] if index else None
        if previous is not None and model.grade == previous.grade:
            return "The grade of each models should not be the same"
        if previous is not None and len(previous.ranges) != len(model.ranges):
            return "The number of resource types should be the same"
        for place, model_range in enumerate(model.ranges):
            fault = _fault_of_range(model_range, previous.ranges[place] if previous is not None else None)
            if fault is None and index == len(models) - 1 and _quantity(model_range.max).value != INT64_MAX:
                fault = "The max value of each resource in the last model should be MaxInt64"
            if fault is not None:
                return fault
    return None


def _fault_of_range(model_range: ResourceModelRange, previous: ResourceModelRange | None) -> str | None:
    low, high = _quantity(model_range.min), _quantity(model_range.max)
    if not high > low:
        return "The max value of each resource must be greater than the min value"
    if previous is None:
        return "The min value of each resource in the first model should be 0" if low.unscaled else None
    if previous.name != model_range.name:
        return "The resource types of each models should be the same"
    if (_quantity(previous.max), quantity_format(previous.max)) != (low, quantity_format(model_range.min)):
        # Upstream compares the internal representations, which differ between "1" and "1000m".
        return "Model intervals for resources must be contiguous and non-overlapping"
    return None


def _quantity(raw: RawQuantity) -> Quantity:
    return exact(raw, "resourceModels")


# ---------------------------------------------------------------- grading


def grade_nodes(snapshot: Snapshot, models: Sequence[ResourceModel]) -> tuple[AllocatableModeling, ...]:
    """Return the number of nodes of each grade, by their free amounts, in the order of the models.

    Stops at the first node without a free pod slot, as upstream does
    (https://github.com/karmada-io/karmada/issues/7757).

    Raises:
        FieldError: an amount cannot be read, or the models have no ranges.
    """
    resources = [model_range.name for model_range in models[0].ranges] if models else []
    if models and not resources:
        raise FieldError("spec.resourceModels[0].ranges", "Required value")
    bounds = {
        name: [
            _quantity(model_range.min) for model in models for model_range in model.ranges if model_range.name == name
        ]
        for name in resources
    }
    counts = np.zeros(len(models), np.int64)
    for row in sorted(snapshot.order.tolist(), key=snapshot.name):
        if snapshot.pod_count[row] and snapshot.pod_count[row] >= snapshot.allowed_pods[row]:
            break
        node = snapshot.nodes[row]
        assert node is not None
        amounts = {name: _remaining(snapshot, row, node, name) for name in resources}
        index = min(_last_at_most(bounds[name], amounts[name]) for name in resources)
        if index >= 0:
            counts[index] += 1
    return tuple(
        AllocatableModeling(grade=model.grade, count=int(count)) for model, count in zip(models, counts, strict=True)
    )


def _remaining(snapshot: Snapshot, row: int, node: Node, name: str) -> Quantity:
    raw: Mapping[str, RawQuantity] = node.status.allocatable
    allocatable = exact(raw.get(name, "0"), f"status.allocatable[{name}]")
    if name not in raw:
        return allocatable
    usage = int(snapshot.pod_count[row] if name == PODS else snapshot.requested(name)[row])
    return allocatable + Quantity(-usage, -3 if name == CPU else 0, wide=False)


def _last_at_most(bounds: Sequence[Quantity], amount: Quantity) -> int:
    """Return the index of the last bound that is not greater than the amount, or -1."""
    return max((index for index, lower in enumerate(bounds) if not lower > amount), default=-1)
