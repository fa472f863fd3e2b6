"""Which clusters an affinity or a static weight selects.

Source: karmada pkg/util/selector.go, v1.18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.bindings import ClusterAffinity, FieldSelector
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.errors import FieldError
from podium.objects.selectors import EVERYTHING, compile_node_selector, compile_selector

ClusterMatcher: TypeAlias = Callable[[Cluster], bool]

_ZONE = "zone"


def compile_affinity(affinity: ClusterAffinity) -> ClusterMatcher:
    """Return the test of whether a cluster is selected. An affinity with an invalid selector selects no cluster."""
    try:
        labels = EVERYTHING if affinity.label_selector is None else compile_selector(affinity.label_selector)
    except FieldError:
        return lambda _: False
    names, exclude = frozenset(affinity.cluster_names), frozenset(affinity.exclude)
    matches_fields = _compile_fields(affinity.field_selector)

    def matches(cluster: Cluster) -> bool:
        name = cluster.metadata.name
        return (
            name not in exclude
            and (not names or name in names)
            and labels.matches(cluster.metadata.labels)
            and matches_fields(cluster)
        )

    return matches


def _compile_fields(selector: FieldSelector | None) -> ClusterMatcher:
    expressions = selector.match_expressions if selector is not None else ()
    zones = [expression for expression in expressions if expression.key == _ZONE]
    other_fields = tuple(expression for expression in expressions if expression.key != _ZONE)
    # A term without expressions would match nothing.
    terms = (NodeSelectorTerm(match_expressions=other_fields),)
    matcher = compile_node_selector(NodeSelector(node_selector_terms=terms)) if other_fields else None
    return lambda cluster: (
        all(_matches_zones(requirement, cluster.spec.zones) for requirement in zones)
        and (matcher is None or matcher.matches(_fields_of(cluster), ""))
    )


def _fields_of(cluster: Cluster) -> dict[str, str]:
    fields = {"provider": cluster.spec.provider, "region": cluster.spec.region}
    return {name: value for name, value in fields.items() if value}


def _matches_zones(requirement: NodeSelectorRequirement, zones: tuple[str, ...]) -> bool:
    is_shared = not set(zones).isdisjoint(requirement.values)
    match requirement.operator:
        case "In":
            return is_shared
        case "NotIn":
            return not is_shared
        case "Exists":
            return bool(zones)
        case "DoesNotExist":
            return not zones
        case _:
            return False
