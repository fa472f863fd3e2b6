"""Relaxes the demands of a pod, one at a time, until it can be placed.

Owns the order in which preferences are dropped. Returns another pod; never changes one.

Source: karpenter pkg/controllers/provisioning/scheduling/preferences.go, v1.15.0.
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar

import msgspec

from podium.objects.affinity import NodeSelector, PodAffinity, PreferredSchedulingTerm, WeightedPodAffinityTerm
from podium.objects.core import Pod, PodSpec, Toleration

PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

_TOLERATE_PREFERENCES: Final = Toleration(operator="Exists", effect=PREFER_NO_SCHEDULE)
_replace = msgspec.structs.replace
_Weighted = TypeVar("_Weighted", PreferredSchedulingTerm, WeightedPodAffinityTerm)


def relax(pod: Pod, *, tolerate_preferences: bool) -> Pod | None:
    """Return the pod with one thing less to ask for, or None if nothing is left to give up.

    Args:
        tolerate_preferences: whether the last step is to tolerate `PreferNoSchedule` taints.
    """
    spec = pod.spec
    relaxed_spec = (
        without_first_alternative(spec)
        or _without_preferred_pods(spec, "pod_affinity")
        or _without_preferred_pods(spec, "pod_anti_affinity")
        or _without_preferred_nodes(spec)
        or _without_soft_spread(spec)
    )
    if relaxed_spec is None and tolerate_preferences:
        tolerant = tolerating_preferences(spec)
        relaxed_spec = tolerant if tolerant is not spec else None
    return None if relaxed_spec is None else _replace(pod, spec=relaxed_spec)


def without_first_alternative(spec: PodSpec) -> PodSpec | None:
    """Return the spec without the first alternative of its required node affinity, or None if no other is left."""
    affinity = spec.affinity
    nodes = affinity and affinity.node_affinity
    # The last alternative is a requirement, not a preference: it stays.
    if not affinity or not nodes or nodes.required is None or len(nodes.required.node_selector_terms) < 2:
        return None
    terms = NodeSelector(node_selector_terms=nodes.required.node_selector_terms[1:])
    return _replace(spec, affinity=_replace(affinity, node_affinity=_replace(nodes, required=terms)))


def tolerating_preferences(spec: PodSpec) -> PodSpec:
    """Return the spec with a toleration of all `PreferNoSchedule` taints; itself if it has that one."""
    if any(
        (toleration.key, toleration.operator, toleration.value, toleration.effect)
        == ("", "Exists", "", PREFER_NO_SCHEDULE)
        for toleration in spec.tolerations
    ):
        return spec
    return _replace(spec, tolerations=(*spec.tolerations, _TOLERATE_PREFERENCES))


def _without_preferred_pods(spec: PodSpec, name: Literal["pod_affinity", "pod_anti_affinity"]) -> PodSpec | None:
    affinity = spec.affinity
    if affinity is None:
        return None
    pods: PodAffinity | None = getattr(affinity, name)
    if pods is None or not pods.preferred:
        return None
    relaxed_pods = _replace(pods, preferred=_without_heaviest(pods.preferred))
    return _replace(spec, affinity=_replace(affinity, **{name: relaxed_pods}))


def _without_preferred_nodes(spec: PodSpec) -> PodSpec | None:
    affinity = spec.affinity
    nodes = affinity and affinity.node_affinity
    if not affinity or not nodes or not nodes.preferred:
        return None
    relaxed_nodes = _replace(nodes, preferred=_without_heaviest(nodes.preferred))
    return _replace(spec, affinity=_replace(affinity, node_affinity=relaxed_nodes))


def _without_heaviest(terms: tuple[_Weighted, ...]) -> tuple[_Weighted, ...]:
    # The sort is stable: of equal weights the earlier term goes first, as upstream.
    return tuple(sorted(terms, key=lambda term: -term.weight)[1:])


def _without_soft_spread(spec: PodSpec) -> PodSpec | None:
    constraints = list(spec.topology_spread_constraints)
    for index, constraint in enumerate(constraints):
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            # The last one takes its place, which changes which one is dropped next.
            constraints[index] = constraints[-1]
            return _replace(spec, topology_spread_constraints=tuple(constraints[:-1]))
    return None
