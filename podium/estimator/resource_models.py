"""Resource models: the default grades, and their validation.

Source: karmada pkg/apis/cluster/{mutation,validation}, v1.18.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.estimator.amounts import exact
from podium.estimator.cluster_objects import ResourceModel, ResourceModelRange
from podium.objects.meta import RawQuantity
from podium.objects.quantity import INT64_MAX, Quantity, quantity_format
from podium.objects.resource_names import CPU

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
