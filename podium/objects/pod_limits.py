"""Limits on the size of a pod that is scheduled: a larger one would delay all other pods.

An API server stores pods of up to 1.5 MiB, which can hold a hundred thousand terms. Such a pod is rejected without
evaluating them. If it runs already, everything that other pods depend on still counts: its requests, labels and
required anti-affinity. Only terms that affect scores are ignored.

Differs: kube-scheduler schedules every pod that an API server stores, however long that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from podium.objects.affinity import NodeSelectorRequirement, PodAffinityTerm
from podium.objects.core import Container, Pod, PodSpec, once_per_spec
from podium.objects.meta import LabelSelector, LabelSelectorRequirement

LABELS_MAX: Final = 10_000
"""How many labels a scheduled pod may have: each is matched against the terms of other pods."""

_Expressions = Iterable[LabelSelectorRequirement | NodeSelectorRequirement]


def excess_of(pod: Pod) -> str:
    """Return the first field over its limit as `excess` does, the pod's labels included."""
    count = len(pod.metadata.labels)
    if count <= LABELS_MAX:
        return excess(pod.spec)
    return f"metadata.labels: {count} labels, at most {LABELS_MAX} are decided on"


@once_per_spec
def excess(spec: PodSpec) -> str:
    """Return the first field over its limit, with its count and limit; empty if the pod can be scheduled."""
    return next((message for count in LIMITS if (message := _excess(spec, count))), "")


def excess_of_pod_affinity(spec: PodSpec) -> str:
    """Return the first field over its limit among pod affinity and anti-affinity only; otherwise like `excess`."""
    return _excess(spec, pod_demands)


def _excess(spec: PodSpec, count: Callable[[PodSpec], int]) -> str:
    field, unit, count_max = LIMITS[count]
    number = count(spec)
    return f"{field}: {number} {unit}, at most {count_max} are decided on" if number > count_max else ""


# ---------------------------------------------------------------- what is counted


def containers(spec: PodSpec) -> int:
    """Return the number of containers, including init containers."""
    return len(spec.containers) + len(spec.init_containers)


def ports(spec: PodSpec) -> int:
    """Return the number of ports of all containers."""
    return sum(len(container.ports) for container in _containers(spec))


def resources(spec: PodSpec) -> int:
    """Return the number of requested or limited resources of all containers."""
    return len({name for container in _containers(spec) for name in container.resources.requests})


def volumes(spec: PodSpec) -> int:
    """Return the number of volumes and resource claims."""
    return len(spec.volumes) + len(spec.resource_claims)


def node_demands(spec: PodSpec) -> int:
    """Return the size of `nodeSelector` and node affinity: labels, terms and expressions."""
    count = len(spec.node_selector)
    rules = spec.affinity.node_affinity if spec.affinity is not None else None
    if rules is not None:
        terms = [term.preference for term in rules.preferred]
        if rules.required is not None:
            terms += rules.required.node_selector_terms
        for term in terms:
            count += 1 + _expressions(term.match_expressions) + _expressions(term.match_fields)
    return count


def pod_demands(spec: PodSpec) -> int:
    """Return the size of pod affinity and anti-affinity: terms with their namespaces and selectors."""
    if spec.affinity is None:
        return 0
    count = 0
    for rules in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
        if rules is not None:
            count += sum(_term(term) for term in rules.required)
            count += sum(_term(term.pod_affinity_term) for term in rules.preferred)
    return count


def spread_demands(spec: PodSpec) -> int:
    """Return the size of the spread constraints with their selectors."""
    return sum(1 + _selector(constraint.label_selector) for constraint in spec.topology_spread_constraints)


LIMITS: Final[dict[Callable[[PodSpec], int], tuple[str, str, int]]] = {
    containers: ("spec.containers", "containers", 2_000),
    ports: ("spec.containers[].ports", "ports", 2_000),
    resources: ("spec.containers[].resources.requests", "resources", 500),
    volumes: ("spec.volumes", "volumes and claims", 2_000),
    node_demands: ("spec.affinity.nodeAffinity", "demands with those of spec.nodeSelector", 2_000),
    pod_demands: ("spec.affinity", "demands of pods", 1_000),
    spread_demands: ("spec.topologySpreadConstraints", "demands", 1_000),
}
"""By count function: the field, its unit in messages, and the limit."""

_VALUES_OF_A_DEMAND: Final = 16  # one value of an expression costs about that much less than another expression


def _containers(spec: PodSpec) -> Iterable[Container]:
    return (*spec.containers, *spec.init_containers)


def _term(term: PodAffinityTerm) -> int:
    return 1 + len(term.namespaces) + _selector(term.label_selector) + _selector(term.namespace_selector)


def _selector(selector: LabelSelector | None) -> int:
    return 0 if selector is None else len(selector.match_labels) + _expressions(selector.match_expressions)


def _expressions(expressions: _Expressions) -> int:
    return sum(1 + len(expression.values) // _VALUES_OF_A_DEMAND for expression in expressions)
