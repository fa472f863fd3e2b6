"""Resource models: what they must be like, and which grade each node is of.

Source: karmada pkg/modeling/modeling.go, pkg/controllers/status/cluster_status_controller.go,
pkg/apis/cluster/{mutation,validation}, v1.18.
Differs: models without ranges are an error here; upstream looks for a grade beyond the last and panics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from podium.cluster import Snapshot
from podium.estimator.amounts import exact
from podium.estimator.cluster_objects import AllocatableModeling, ResourceModel, ResourceModelRange
from podium.objects.core import Node, RawQuantity
from podium.objects.errors import FieldError
from podium.objects.quantity import INT64_MAX, Quantity
from podium.objects.resource_names import CPU, PODS

_GIB: Final = 1 << 30
_CPU_BOUNDS: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, INT64_MAX)
_MEMORY_BOUNDS: Final = (0, *(gib * _GIB for gib in (4, 16, 32, 64, 128, 256, 512, 1024)), INT64_MAX)


def default_models() -> tuple[ResourceModel, ...]:
    """The nine grades of a cluster that has none of its own."""
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


def standardised(models: Iterable[ResourceModel]) -> tuple[ResourceModel, ...]:
    """In order of grade; the first begins at nothing, the last has no end."""
    ordered = sorted(models, key=lambda model: model.grade)
    result = []
    for index, model in enumerate(ordered):
        ranges = tuple(
            ResourceModelRange(
                name=each.name,
                min="0" if index == 0 else each.min,
                max=str(INT64_MAX) if index == len(ordered) - 1 else each.max,
            )
            for each in model.ranges
        )
        result.append(ResourceModel(grade=model.grade, ranges=ranges))
    return tuple(result)


def fault_of(models: Sequence[ResourceModel]) -> str | None:
    """What is wrong with models, in upstream's words; None where nothing is.

    Args:
        models: in order of grade.

    Raises:
        FieldError: a bound cannot be read.
    """
    for index, model in enumerate(models):
        before = models[index - 1] if index else None
        if before is not None and model.grade == before.grade:
            return "The grade of each models should not be the same"
        if before is not None and len(before.ranges) != len(model.ranges):
            return "The number of resource types should be the same"
        for place, each in enumerate(model.ranges):
            fault = _fault_of_range(each, before.ranges[place] if before is not None else None)
            if fault is None and index == len(models) - 1 and _bound(each.max).value != INT64_MAX:
                fault = "The max value of each resource in the last model should be MaxInt64"
            if fault is not None:
                return fault
    return None


def _fault_of_range(each: ResourceModelRange, before: ResourceModelRange | None) -> str | None:
    low, high = _bound(each.min), _bound(each.max)
    if not high > low:
        return "The max value of each resource must be greater than the min value"
    if before is None:
        return "The min value of each resource in the first model should be 0" if low.unscaled else None
    if before.name != each.name:
        return "The resource types of each models should be the same"
    if (_bound(before.max), quantity_format(before.max)) != (low, quantity_format(each.min)):
        # "1" and "1000m" are held in different ways, and upstream compares the ways.
        return "Model intervals for resources must be contiguous and non-overlapping"
    return None


def _bound(raw: RawQuantity) -> Quantity:
    return exact(raw, "resourceModels")


def quantity_format(raw: RawQuantity) -> str:
    """The family that a quantity's text belongs to: BinarySI, DecimalExponent or DecimalSI."""
    text = str(raw)
    if text.endswith("i"):
        return "BinarySI"
    return "DecimalExponent" if any(letter in text[:-1] for letter in "eE") else "DecimalSI"


# ---------------------------------------------------------------- grading


def grade_nodes(
    snapshot: Snapshot, models: Sequence[ResourceModel], *, lose_nodes: bool = True
) -> tuple[AllocatableModeling, ...]:
    """How many nodes are of each grade, by what they have left; in order of the models.

    Args:
        lose_nodes: stop at the first node without a free pod slot, as upstream does
            (https://github.com/karmada-io/karmada/issues/7757); otherwise only that node is left out.

    Raises:
        FieldError: an amount cannot be read, or the models have no ranges.
    """
    resources = [each.name for each in models[0].ranges] if models else []
    if models and not resources:
        raise FieldError("spec.resourceModels[0].ranges", "Required value")
    bounds = {
        name: [_bound(each.min) for model in models for each in model.ranges if each.name == name] for name in resources
    }
    counts = np.zeros(len(models), np.int64)
    for row in sorted(snapshot.order.tolist(), key=snapshot.name):
        if snapshot.pod_count[row] and snapshot.pod_count[row] >= snapshot.allowed_pods[row]:
            if lose_nodes:
                break
            continue
        node = snapshot.nodes[row]
        assert node is not None
        left = {name: _left(snapshot, row, node, name) for name in resources}
        index = min(_last_at_most(bounds[name], left[name]) for name in resources)
        if index >= 0:
            counts[index] += 1
    return tuple(
        AllocatableModeling(grade=model.grade, count=int(count)) for model, count in zip(models, counts, strict=True)
    )


def _left(snapshot: Snapshot, row: int, node: Node, name: str) -> Quantity:
    raw: Mapping[str, RawQuantity] = node.status.allocatable
    allocatable = exact(raw.get(name, "0"), f"status.allocatable[{name}]")
    if name not in raw:
        return allocatable
    taken = int(snapshot.pod_count[row] if name == PODS else snapshot.requested(name)[row])
    return allocatable + Quantity(-taken, -3 if name == CPU else 0, wide=False)


def _last_at_most(bounds: Sequence[Quantity], amount: Quantity) -> int:
    """The last bound that is no greater than the amount, -1 where there is none."""
    return max((index for index, bound in enumerate(bounds) if not bound > amount), default=-1)
