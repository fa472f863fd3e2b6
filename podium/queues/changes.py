"""Turns an update of a pod or a node into cluster events: one for each changed property that matters for scheduling.

Pure functions of the old and the new object.

Source: kubernetes pkg/scheduler/framework/events.go, v1.36.2 and v1.37.2.
Differs: a quantity that cannot be parsed counts as changed: one futile retry is better than a pod never retried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from podium.config import Release
from podium.framework.contract.cluster_event import ActionType, ClusterEvent
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse
from podium.objects.requests import Requests, is_resized, pod_requests_with_status
from podium.objects.resource_types import EventResource

_NodeCheck: TypeAlias = Callable[[Node, Node], bool]

# By identity: hashing an Enum runs Python code.
_UPDATES: Final = {id(resource): (ClusterEvent(resource, ActionType.UPDATE),) for resource in EventResource}


def pod_changes(old: Pod, new: Pod, release: Release, *, is_own: bool = True) -> tuple[ClusterEvent, ...]:
    """Return the events that describe the pod's change; one generic update if no specific event does.

    Args:
        is_own: the events are for the pod itself; if it has a node, they are for other pods in any case.
    """
    waiting = release.events.target_pod if is_own else release.events.unscheduled_pod
    resource = EventResource.ASSIGNED_POD if new.node_name else waiting
    actions = _pod_actions(old, new, release)
    return tuple(ClusterEvent(resource, action) for action in actions) if actions else _UPDATES[id(resource)]


def node_changes(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """Return the events that describe the node's change; empty if only its heartbeat changed or it was cordoned."""
    return tuple(event for event, has_changed in _NODE_CHECKS if has_changed(old, new))


# ---------------------------------------------------------------- pods


def _pod_actions(old: Pod, new: Pod, release: Release) -> list[ActionType]:
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UPDATE_POD_LABEL)
    if old.spec is not new.spec or is_resized(old) or is_resized(new):
        actions += _resizes(old, new, release)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(ActionType.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        actions.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions


def _resizes(old: Pod, new: Pod, release: Release) -> Sequence[ActionType]:
    try:
        by_container = not release.sums_resized_pods
        old_requests = pod_requests_with_status(old, by_container=by_container)
        new_requests = pod_requests_with_status(new, by_container=by_container)
    except FieldError:
        return (ActionType.UPDATE_POD_SCALE_DOWN,)
    actions = []
    if _exceeds(old_requests, new_requests):
        actions.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if release.events.have_scale_up and _exceeds(new_requests, old_requests):
        actions.append(ActionType.UPDATE_POD_SCALE_UP)
    return actions


def _exceeds(requests: Requests, limits: Requests) -> bool:
    return any(name not in limits or limits[name] < amount for name, amount in requests.items())


# ---------------------------------------------------------------- nodes


def _allocatable_differs(old: Node, new: Node) -> bool:
    old_amounts, new_amounts = old.status.allocatable, new.status.allocatable
    if old_amounts == new_amounts:
        return False
    return old_amounts.keys() != new_amounts.keys() or any(
        _differ(raw, new_amounts[name]) for name, raw in old_amounts.items()
    )


def _differ(a: RawQuantity, b: RawQuantity) -> bool:
    """Return whether the quantities are different numbers, not just different spellings of one number."""
    if a == b:
        return False
    try:
        first, second = parse(a), parse(b)
    except QuantityError:
        return True
    return first > second or second > first


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _on(action: ActionType, has_changed: _NodeCheck) -> tuple[ClusterEvent, _NodeCheck]:
    return ClusterEvent(EventResource.NODE, action), has_changed


_NODE_CHECKS: Final = (
    _on(ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.unschedulable and not new.spec.unschedulable),
    _on(ActionType.UPDATE_NODE_ALLOCATABLE, _allocatable_differs),
    _on(ActionType.UPDATE_NODE_LABEL, lambda old, new: old.metadata.labels != new.metadata.labels),
    _on(ActionType.UPDATE_NODE_TAINT, lambda old, new: old.spec.taints != new.spec.taints),
    _on(
        ActionType.UPDATE_NODE_CONDITION,
        lambda old, new: old.status.conditions != new.status.conditions and _conditions(old) != _conditions(new),
    ),
    _on(ActionType.UPDATE_NODE_ANNOTATION, lambda old, new: old.metadata.annotations != new.metadata.annotations),
    _on(
        ActionType.UPDATE_NODE_PREEMPTION_POLICY,
        lambda old, new: old.spec.pod_preemption_policy != new.spec.pod_preemption_policy,
    ),
    _on(
        ActionType.UPDATE_NODE_DECLARED_FEATURE,
        lambda old, new: old.status.declared_features != new.status.declared_features,
    ),
)
