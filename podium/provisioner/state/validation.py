"""Decides which waiting pods are planned for, and why others are ignored.

Owns the rules for pods before any node is looked at.

Source: karpenter pkg/controllers/provisioning/provisioner.go and pkg/utils/pod/scheduling.go, v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from podium.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.selectors import is_label_value, is_qualified_name, parse_int64
from podium.provisioner.apis.labels import (
    CAPACITY_TYPE,
    NODE_POOL,
    ON_DEMAND,
    RESERVED,
    RESTRICTED_DOMAINS,
    SPOT,
    current_name,
    is_restricted_label,
)
from podium.provisioner.scheduling.pod_requirements import pod_requirements
from podium.provisioner.scheduling.requirements import OPERATORS
from podium.provisioner.scheduling.volumes import Volumes


def is_owned_by(pod: Pod, api_version: str, kind: str) -> bool:
    """Return True if the pod has an owner of this kind."""
    return any((owner.api_version, owner.kind) == (api_version, kind) for owner in pod.metadata.owner_references)


def is_owned_by_daemon_set(pod: Pod) -> bool:
    """Return True if a DaemonSet owns the pod."""
    return is_owned_by(pod, "apps/v1", "DaemonSet")


def is_mirror(pod: Pod) -> bool:
    """Return True if a node owns the pod: it stands for a static pod."""
    return is_owned_by(pod, "v1", "Node")


def is_provisionable(pod: Pod) -> bool:
    """Return True if kube-scheduler found no node for the pod, so that one may be bought for it."""
    return (
        any(
            # Upstream does not look at the condition's status. A gated pod has another reason and is no trigger.
            condition.type == "PodScheduled" and condition.reason == "Unschedulable"
            for condition in pod.status.conditions
        )
        and not pod.node_name
        # Preemption makes room for a nominated pod; a node bought for it would stay empty.
        and not pod.status.nominated_node_name
        and not is_owned_by_daemon_set(pod)
        and not is_mirror(pod)
    )


def fault_of(pod: Pod, volumes: Volumes, well_known: AbstractSet[str]) -> str | None:
    """Return the reason why a provisionable pod is ignored, or None if it is not.

    Args:
        well_known: all well known labels, those of the provider included.
    """
    return "; ".join(_faults(pod, volumes, well_known)) or None


def _faults(pod: Pod, volumes: Volumes, well_known: AbstractSet[str]) -> Iterator[str]:
    spec = pod.spec
    affinity = spec.affinity and spec.affinity.node_affinity
    terms: tuple[NodeSelectorTerm, ...] = ()
    if affinity and affinity.required is not None:
        terms = affinity.required.node_selector_terms
    if _avoids_node_pools(pod):
        requirement_text = f"requirement={NODE_POOL} DoesNotExist"
        # Preferred terms are not checked: relaxation drops those that cannot be met.
        yield f"configured to not run on a Karpenter provisioned node ({requirement_text})"
    for key, value in spec.node_selector.items():
        yield from _requirement_faults(NodeSelectorRequirement(key=key, operator="In", values=(value,)), well_known)
    for term in terms:
        if term.match_fields:
            yield "node selector term with matchFields is not supported"
        for expression in term.match_expressions:
            yield from _requirement_faults(expression, well_known)
    fault = volumes.fault(pod)
    if fault is not None:
        yield fault


def _avoids_node_pools(pod: Pod) -> bool:
    try:
        requirements = pod_requirements(pod.spec)
    except FieldError:
        return False  # a requirement without meaning is reported on its own
    return NODE_POOL in requirements and requirements.get(NODE_POOL).operator == "DoesNotExist"


def _requirement_faults(requirement: NodeSelectorRequirement, well_known: AbstractSet[str]) -> Iterator[str]:
    key, operator, values = current_name(requirement.key), requirement.operator, requirement.values
    if operator not in OPERATORS:
        yield f"key {key} has an unsupported operator {operator} not in [{' '.join(OPERATORS)}]"
    if is_restricted_label(key, well_known):
        known_labels, domains = " ".join(sorted(well_known)), " ".join(sorted(RESTRICTED_DOMAINS))
        yield (
            f"using label {key} is not allowed as it might interfere with the internal provisioning logic; "
            # Upstream's own words, with its map in Go's format: recorded answers hold podium to them.
            f"specify a well known label: [{known_labels}], or a custom label that does not use a restricted domain: "
            f"[{domains}]"
        )
    if key == CAPACITY_TYPE and operator == "In" and not {ON_DEMAND, RESERVED, SPOT} & set(values):
        capacity_types = " ".join(f"{capacity_type}:{{}}" for capacity_type in (ON_DEMAND, RESERVED, SPOT))
        text = f"[{' '.join(values)}]"
        yield f"no valid values found in {text} for {key}, expected one of: map[{capacity_types}], got: {text}"
    if not is_qualified_name(key):
        yield f"key {key} is not a qualified name"
    for value in values:
        if not is_label_value(value):
            yield f"invalid value {value} for key {key}"
    if operator == "In" and not values:
        yield f"key {key} with operator {operator} must have a value defined"
    if operator in ("Gt", "Lt", "Gte", "Lte"):
        limit = parse_int64(values[0]) if len(values) == 1 else None
        if limit is None or limit < 0:
            yield f"key {key} with operator {operator} must have a single positive integer value"
