"""The general estimator: how many replicas fit according to Karmada's Cluster object.

Owns the estimate from the resource summary, and its limit by resource models. It has no nodes, so taints and affinity
are ignored.

Source: karmada pkg/estimator/client/general.go, v1.18; for the older semantics of models v1.17 and v1.11.
Differs: answers beyond int32 saturate. With the v1.17 semantics an empty request is limited by pods only; upstream
overflows. Models with more than a million nodes are ignored, since every node would be tried.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from podium.estimator.amounts import Demand, count_resources, exact, whole_units
from podium.estimator.cluster_objects import AllocatableModeling, Cluster, ResourceModel, ResourceSummary
from podium.estimator.component_sets import max_available_sets
from podium.estimator.free_capacity import UniformCapacity
from podium.estimator.replicas import max_available_replicas
from podium.estimator.requirements import AssumedWorkload, Component, Requirements, saturate
from podium.objects.meta import RawQuantity, ResourceList
from podium.objects.quantity import Quantity, quantity_format
from podium.objects.resource_names import CPU, PODS

PODS_PER_NODE = 110
"""The assumed pod capacity of a node of any grade."""

_NODES_MAX = 1_000_000


class ModelsSemantics(enum.Enum):
    """The way in which resource models limit an estimate, named after the last Karmada release with that behaviour."""

    CURRENT = "current"
    V1_17 = "v1.17"
    V1_11 = "v1.11"


class ModelsError(Exception):
    """The cluster's models give no answer to the question."""


def general_replicas(
    cluster: Cluster,
    requirements: Requirements | None,
    assumed_workloads: Sequence[AssumedWorkload] = (),
    semantics: ModelsSemantics = ModelsSemantics.CURRENT,
) -> int:
    """Return how many replicas fit into the cluster, by its total amounts.

    Raises:
        FieldError: an amount cannot be read.
    """
    amounts = _summary_amounts(cluster, assumed_workloads, _units)
    if amounts is None:
        return 0
    summary, pods, assumed_amounts = amounts
    if requirements is None:
        return saturate(pods)
    if summary.allocatable_modelings:
        # Upstream logs why models give no answer and goes on with the summary.
        try:
            return saturate(min(replicas_by_models(cluster, requirements, assumed_workloads, semantics), pods))
        except ModelsError:
            pass
    return saturate(min(_replicas_by_summary(summary, requirements, assumed_amounts), pods))


def replicas_by_models(
    cluster: Cluster,
    requirements: Requirements,
    assumed_workloads: Sequence[AssumedWorkload] = (),
    semantics: ModelsSemantics = ModelsSemantics.CURRENT,
) -> int:
    """Return how many replicas fit if every node has exactly the minimum of its grade.

    Raises:
        ModelsError: there are no models, or, with older semantics, they lack a resource of the request.
        FieldError: an amount cannot be read.
    """
    if semantics is ModelsSemantics.CURRENT:
        return max_available_replicas(_capacity(cluster), requirements, assumed_workloads)
    return _replicas_by_compliant_grades(cluster, requirements, semantics)


def general_sets(
    cluster: Cluster, components: Sequence[Component | None], assumed_workloads: Sequence[AssumedWorkload] = ()
) -> int:
    """Return how many component sets fit into the cluster, by its total amounts.

    Raises:
        FieldError: an amount cannot be read.
    """
    amounts = _summary_amounts(cluster, assumed_workloads, _by_format)
    if amounts is None:
        return 0
    summary, pods, assumed_amounts = amounts
    present = [component for component in components if component is not None]
    pods_per_set = sum(component.replicas for component in present)
    if pods_per_set <= 0:
        # Without any replica upstream answers with the free pods.
        return saturate(pods)
    sets = saturate(pods // pods_per_set)
    for name, amount in _amounts(present, _by_format).items():
        if amount > 0:
            units = _left_by_format(summary, name) - assumed_amounts.get(name, 0)
            if units <= 0:
                return 0
            sets = min(sets, units // amount)
    if not summary.allocatable_modelings:
        return sets
    try:
        return max_available_sets(_capacity(cluster), present, assumed_workloads, sets)
    except ModelsError:
        return sets


# ---------------------------------------------------------------- the summary


class _SummaryAmounts(NamedTuple):
    """The free pod slots of the cluster, and the other amounts of assumed workloads."""

    summary: ResourceSummary
    pods: int
    assumed_amounts: Counter[str]


def _summary_amounts(
    cluster: Cluster, assumed_workloads: Iterable[AssumedWorkload], measure: Callable[[str, RawQuantity], int]
) -> _SummaryAmounts | None:
    """Return the free pod slots. None if there are none, or if the cluster has no summary."""
    summary = cluster.status.resource_summary
    if summary is None:
        return None
    assumed_amounts = _assumed_amounts(assumed_workloads, measure)
    pods = _free_pods(summary) - assumed_amounts.pop(PODS, 0)
    return _SummaryAmounts(summary, pods, assumed_amounts) if pods > 0 else None


def _free_pods(summary: ResourceSummary) -> int:
    limit, usages = summary.allocatable.get(PODS, 0), (summary.allocated, summary.allocating)
    return whole_units(PODS, limit, PODS) - sum(whole_units(PODS, usage.get(PODS, 0), PODS) for usage in usages)


def _replicas_by_summary(
    summary: ResourceSummary, requirements: Requirements, assumed_amounts: Mapping[str, int]
) -> int:
    counts = []
    for name, raw in requirements.resource_request.items():
        amount = exact(raw, f"resourceRequest[{name}]")
        if amount.value <= 0:
            continue
        # A resource that the summary does not list counts as absent.
        if name not in summary.allocatable:
            return 0
        assumed_amount = assumed_amounts.get(name, 0)
        # Assumed amounts are in thousandths for cpu, as they were measured.
        free = _remaining(summary, name) + Quantity(-assumed_amount, -3 if name == CPU else 0, wide=False)
        if free.value <= 0:
            return 0
        counts.append(free.milli_value // amount.milli_value if name == CPU else free.value // amount.value)
    return min(counts, default=_free_pods(summary))


def _remaining(summary: ResourceSummary, name: str) -> Quantity:
    free = exact(summary.allocatable[name], f"allocatable[{name}]")
    for usage in (summary.allocated, summary.allocating):
        if name in usage:
            amount = exact(usage[name], name)
            free += Quantity(-amount.unscaled, amount.exponent, amount.wide)
    return free


def _left_by_format(summary: ResourceSummary, name: str) -> int:
    """Return the free amount as upstream compares it for sets: in thousandths, unless its format is BinarySI."""
    if name not in summary.allocatable:
        return 0
    form = quantity_format(summary.allocatable[name])
    free = exact(summary.allocatable[name], f"allocatable[{name}]")
    for usage in (summary.allocated, summary.allocating):
        if name in usage:
            # Go's Quantity takes the format of what it is subtracted from only while it is zero.
            if not free.unscaled:
                form = quantity_format(usage[name])
            amount = exact(usage[name], name)
            free += Quantity(-amount.unscaled, amount.exponent, amount.wide)
    return free.value if form == "BinarySI" else free.milli_value


def _by_format(name: str, raw: RawQuantity) -> int:
    amount = exact(raw, f"resourceRequest[{name}]")
    return amount.value if quantity_format(raw) == "BinarySI" else amount.milli_value


def _units(name: str, raw: RawQuantity) -> int:
    return whole_units(name, raw, f"resourceRequest[{name}]")


def _amounts(components: Iterable[Component], measure: Callable[[str, RawQuantity], int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for component in components:
        requests: ResourceList = (
            component.replica_requirements.resource_request if component.replica_requirements is not None else {}
        )
        for name, raw in requests.items():
            total[name] += measure(name, raw) * component.replicas
    return total


def _assumed_amounts(
    assumed_workloads: Iterable[AssumedWorkload], measure: Callable[[str, RawQuantity], int]
) -> Counter[str]:
    """Return the amounts of the assumed workloads, pods included."""
    components = [
        component
        for workload in assumed_workloads
        for component in workload.components
        if component is not None and component.replicas > 0
    ]
    total = _amounts(components, measure)
    total[PODS] += sum(component.replicas for component in components)
    return total


# ---------------------------------------------------------------- models


def _capacity(cluster: Cluster) -> UniformCapacity:
    """Return stand-in nodes: for each node of a grade, one that has the minimum of that grade."""
    models, summary = cluster.spec.resource_models, cluster.status.resource_summary
    if summary is None:
        raise ModelsError("resource summary is nil")
    if not models:
        raise ModelsError("no resource models defined")
    count_of: Counter[int] = Counter()
    for modeling in summary.allocatable_modelings:
        if modeling.count < 0:
            raise ModelsError(f"negative node count for grade {modeling.grade}")
        count_of[modeling.grade] += modeling.count
    # Grades come from another cluster's status, and a count there could be anything.
    if count_of.total() > _NODES_MAX:
        raise ModelsError(f"more than {_NODES_MAX:,} nodes")
    size_of = {model.grade: _beginning(model) for model in models}
    return UniformCapacity(
        [size for grade, size in sorted(size_of.items()) for _ in range(count_of[grade])], PODS_PER_NODE
    )


def _beginning(model: ResourceModel) -> dict[str, int]:
    return count_resources(
        {model_range.name: model_range.min for model_range in model.ranges}, f"resourceModels[{model.grade}]"
    )


def _replicas_by_compliant_grades(cluster: Cluster, requirements: Requirements, semantics: ModelsSemantics) -> int:
    """Return the replicas on all grades, starting with the first one that satisfies the request."""
    models, summary = cluster.spec.resource_models, cluster.status.resource_summary
    if summary is None or not models:
        raise ModelsError("no resource models defined")
    needs = [
        Demand(name, amount)
        for name, raw in requirements.resource_request.items()
        if (amount := whole_units(name, raw, f"resourceRequest[{name}]")) > 0
    ]
    sizes = [
        {
            # By the minimum of a grade's range: every node of the grade has at least that.
            model_range.name: whole_units(model_range.name, model_range.min, "resourceModels")
            for model_range in model.ranges
        }
        for model in models
    ]
    for name, _ in needs:
        if any(name not in size for size in sizes):
            raise ModelsError(f"the models do not list {name}")
    if not needs:
        return _free_pods(summary)
    # v1.17 asks for a minimum that is enough; v1.11 counts a node of the grade that may be enough as one replica.
    if semantics is ModelsSemantics.V1_17:
        first, at_least = _first_that_holds(sizes, needs), 0
    else:
        first, at_least = _first_that_may_hold(sizes, needs), 1
    return _replicas_from(first, sizes, summary.allocatable_modelings, needs, at_least)


def _first_that_holds(sizes: Sequence[Mapping[str, int]], needs: Iterable[Demand]) -> int:
    """Return the index of the first grade whose minimum satisfies the request; the number of grades if none does."""
    return max(
        next((index for index, size in enumerate(sizes) if size[name] >= amount), len(sizes)) for name, amount in needs
    )


def _first_that_may_hold(sizes: Sequence[Mapping[str, int]], needs: Iterable[Demand]) -> int:
    """Return the index of the grade whose range contains the request."""
    return max(
        next((index for index, size in enumerate(sizes) if size[name] > amount), len(sizes)) - 1
        for name, amount in needs
    )


def _replicas_from(
    first: int,
    sizes: Sequence[Mapping[str, int]],
    modelings: Sequence[AllocatableModeling],
    needs: Sequence[Demand],
    at_least: int,
) -> int:
    """Return the replicas from grade `first` on. Grades and counts are matched by index, as in those releases."""
    total = 0
    # zip ends with the shorter list: a cluster's status may lag behind its spec.
    for size, modeling in list(zip(sizes, modelings, strict=False))[max(first, 0) :]:
        sets = min(size[name] // amount for name, amount in needs)
        total += max(sets, at_least) * modeling.count
    return total
