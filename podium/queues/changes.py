"""Turns an update of a pod or a node into cluster events: one for each changed property that matters for scheduling.

Pure functions of the old and the new object.

Source: kubernetes pkg/scheduler/framework/events.go, v1.36.2.
Differs: a quantity that cannot be parsed counts as changed: one futile retry is better than a pod never retried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from podium.framework.contract.cluster_event import UNSCHEDULABLE_POD_UPDATE, ActionType, ClusterEvent, EventResource
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.meta import RawQuantity
from podium.objects.quantity import QuantityError, parse
from podium.objects.requests import pod_requests_with_status

_PodCheck: TypeAlias = Callable[[Pod, Pod], bool]
_NodeCheck: TypeAlias = Callable[[Node, Node], bool]


def pod_changes(old: Pod, new: Pod) -> tuple[ClusterEvent, ...]:
    """Return the events that describe the pod's change; one generic update if no specific event does."""
    events = _UNASSIGNED if not new.node_name else _ASSIGNED
    changes = tuple(events[action] for action, has_changed in _POD_CHECKS.items() if has_changed(old, new))
    return changes or (events[ActionType.UPDATE],)


def node_changes(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """Return the events that describe the node's change; empty if only its heartbeat changed or it was cordoned."""
    return tuple(event for event, has_changed in _NODE_CHECKS if has_changed(old, new))


# ---------------------------------------------------------------- pods


def _has_scaled_down(old: Pod, new: Pod) -> bool:
    if old.spec is new.spec and old.status == new.status:
        return False
    try:
        old_requests, new_requests = pod_requests_with_status(old), pod_requests_with_status(new)
    except FieldError:
        return True
    return any(name not in new_requests or new_requests[name] < amount for name, amount in old_requests.items())


_POD_CHECKS: Final[dict[ActionType, _PodCheck]] = {
    ActionType.UPDATE_POD_LABEL: lambda old, new: old.metadata.labels != new.metadata.labels,
    ActionType.UPDATE_POD_SCALE_DOWN: _has_scaled_down,
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: lambda old, new: (
        bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates
    ),
    ActionType.UPDATE_POD_TOLERATION: lambda old, new: len(old.spec.tolerations) != len(new.spec.tolerations),
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: lambda old, new: (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ),
}


def _pod_events(resource: EventResource) -> dict[ActionType, ClusterEvent]:
    return {action: ClusterEvent(resource, action) for action in (*_POD_CHECKS, ActionType.UPDATE)}


_ASSIGNED: Final = _pod_events(EventResource.ASSIGNED_POD)
_UNASSIGNED: Final = {
    **_pod_events(EventResource.UNSCHEDULABLE_POD),
    ActionType.UPDATE: UNSCHEDULABLE_POD_UPDATE,
}


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
        ActionType.UPDATE_NODE_DECLARED_FEATURE,
        lambda old, new: old.status.declared_features != new.status.declared_features,
    ),
)
