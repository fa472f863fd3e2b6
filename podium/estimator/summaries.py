"""The part of a Cluster's status that Karmada's general estimator reads, computed from the member's nodes and pods.

Owns the sums over nodes and pods and the grades of nodes. An init container is compared with the sum of all pods before
it, as upstream compares it, so that the order of the pods matters.

Source: karmada pkg/controllers/status/cluster_status_controller.go, pkg/modeling/modeling.go and pkg/util/resource.go,
v1.18.
Differs: all nodes are graded, unless `skips_after_full_node`: upstream stops at the first node without a free pod slot
(https://github.com/karmada-io/karmada/issues/7757). Models without ranges are an error; upstream panics.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.estimator.amounts import count_resources, exact, whole_units
from podium.estimator.cluster_objects import AllocatableModeling, NodeSummary, ResourceModel, ResourceSummary
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.meta import ResourceList
from podium.objects.quantity import Quantity, quantity_format, text_of
from podium.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_hugepages


@dataclass(frozen=True, slots=True)
class MemberSummary:
    """The summaries of one member cluster."""

    nodes: NodeSummary
    resources: ResourceSummary


def summarise(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    models: Sequence[ResourceModel],
    *,
    skips_after_full_node: bool = False,
) -> MemberSummary:
    """Return the summaries.

    Args:
        nodes, pods: all of the member's, in the order in which they count.
        models: none of them: without grades.
        skips_after_full_node: reproduce upstream's fault.

    Raises:
        FieldError: an amount cannot be read, or the models have no ranges.
    """
    running_pods = [pod for pod in pods if pod.node_name and not pod.has_ended]
    # A pod that ended before it got a node still counts as waiting.
    waiting = [pod for pod in pods if not pod.node_name]
    ready = sum(_is_ready(node) for node in nodes)
    resources = ResourceSummary(
        allocatable=_allocatable(nodes),
        allocating=_resource_list(_requests(waiting)),
        allocated=_resource_list(_requests(running_pods)),
        allocatable_modelings=allocatable_modelings(nodes, running_pods, models, skips_after_full_node),
    )
    return MemberSummary(NodeSummary(total_num=len(nodes), ready_num=ready), resources)


def _is_ready(node: Node) -> bool:
    conditions = node.status.conditions
    return next((condition.status == "True" for condition in conditions if condition.type == "Ready"), False)


# ---------------------------------------------------------------- sums


def _allocatable(nodes: Iterable[Node]) -> ResourceList:
    """Return the exact sums over the nodes. The format is that of the first amount that is not zero."""
    totals: dict[str, tuple[Quantity, str]] = {}
    for node in nodes:
        for name, raw in node.status.allocatable.items():
            amount = exact(raw, f"node {node.name}: status.allocatable[{name}]")
            total, form = totals.get(name, (None, ""))
            if total is None:
                totals[name] = amount, quantity_format(raw)
            else:
                totals[name] = total + amount, form if total.unscaled else quantity_format(raw)
    return {name: text_of(total, form) for name, (total, form) in totals.items()}


def _requests(pods: Iterable[Pod]) -> Counter[str]:
    """Return what the pods request together, pods included, in whole units."""
    total: Counter[str] = Counter()
    for pod in pods:
        _add_pod(total, pod)
    return total


def _add_pod(total: Counter[str], pod: Pod) -> None:
    for amounts, is_init in _containers(pod.spec):
        for name, amount in amounts.items():
            # With the sum of everything before: this is upstream's rule, though it hides most init containers.
            total[name] = max(total[name], amount) if is_init else total[name] + amount
    total[PODS] += 1


@once_per_spec
def _containers(spec: PodSpec) -> Sequence[tuple[Mapping[str, int], bool]]:
    """Return the amounts that are added, and those of init containers, in the order in which they count."""
    parts = [
        (count_resources(container.resources.requests, f"spec.containers[{index}].resources.requests"), False)
        for index, container in enumerate(spec.containers)
    ]
    parts += [
        (count_resources(container.resources.requests, f"spec.initContainers[{index}].resources.requests"), True)
        for index, container in enumerate(spec.init_containers)
    ]
    return [*parts, (count_resources(spec.overhead, "spec.overhead"), False)]


def _resource_list(amounts: Mapping[str, int]) -> ResourceList:
    return {name: text_of(_quantity(name, amount), _form(name)) for name, amount in amounts.items() if amount > 0}


def _quantity(name: str, amount: int) -> Quantity:
    return Quantity(amount, -3 if name == CPU else 0, wide=False)


def _form(name: str) -> str:
    return "BinarySI" if name in (MEMORY, EPHEMERAL_STORAGE) or is_hugepages(name) else "DecimalSI"


# ---------------------------------------------------------------- grades


def allocatable_modelings(
    nodes: Iterable[Node], running_pods: Iterable[Pod], models: Sequence[ResourceModel], skips_after_full_node: bool
) -> tuple[AllocatableModeling, ...]:
    """Return the number of nodes of each grade, by what they have left; nothing if the models contradict each other.

    Args:
        running_pods: the pods that run on nodes.

    Raises:
        FieldError: an amount cannot be read, or the models have no ranges.
    """
    bounds = _bounds(models)
    if bounds is None:
        return ()
    usage: dict[str, Counter[str]] = defaultdict(Counter)
    for pod in running_pods:
        _add_pod(usage[pod.node_name], pod)
    counts: Counter[int] = Counter()
    for node in nodes:
        free = _free_amounts(node, usage.get(node.name), bounds)
        if free is None:
            if skips_after_full_node:
                break
            continue
        # A node in debt has no grade.
        counts[min(_last_at_most(bounds[name], free[name]) for name in bounds)] += 1
    return tuple(AllocatableModeling(grade=model.grade, count=counts[index]) for index, model in enumerate(models))


def _bounds(models: Sequence[ResourceModel]) -> dict[str, list[Quantity]] | None:
    """Return the lower bounds of the grades by resource, or None if the grades do not name the same resources."""
    if not models:
        return None
    names: list[str] = []
    for model in models:
        for model_range in model.ranges:
            if len(names) != len(model.ranges):
                names.append(model_range.name)
    minima = [{model_range.name: model_range.min for model_range in model.ranges} for model in models]
    if not names:
        raise FieldError("spec.resourceModels[0].ranges", "Required value")
    if len(names) != len(minima[0]):
        return None
    return {name: [exact(minimum.get(name, "0"), "resourceModels") for minimum in minima] for name in names}


def _free_amounts(node: Node, usage: Mapping[str, int] | None, names: Iterable[str]) -> Mapping[str, Quantity] | None:
    """Return what the node has left; None if no pod slot is. A node without pods is taken as it is."""
    allocatable = node.status.allocatable
    path = f"node {node.name}: status.allocatable"
    if usage is not None and whole_units(PODS, allocatable.get(PODS, "0"), f"{path}[{PODS}]") <= usage[PODS]:
        return None
    free = {}
    for name in names:
        free[name] = exact(allocatable.get(name, "0"), f"{path}[{name}]")
        if usage is not None and name in allocatable:
            free[name] += _quantity(name, -max(0, usage.get(name, 0)))
    return free


def _last_at_most(bounds: Sequence[Quantity], amount: Quantity) -> int:
    """Return the index of the last bound that is not greater than the amount, or -1, by bisection as upstream."""
    low, high = 0, len(bounds) - 1
    while low <= high:
        middle = (low + high) // 2
        if bounds[middle] > amount:
            high = middle - 1
        elif middle == len(bounds) - 1 or bounds[middle + 1] > amount:
            return middle
        else:
            low = middle + 1
    return -1
