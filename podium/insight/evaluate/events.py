"""The cluster events of a change, and the plugins whose queueing hints requeue a pod for them.

Source: kubernetes v1.36.2 and v1.37.2, pkg/scheduler/eventhandlers.go and backend/queue/scheduling_queue.go
(isPodWorthRequeuing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.config import Release
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    RESOURCES_BY_KIND,
    ActionType,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
)
from podium.framework.profile.runtime import Framework
from podium.objects.core import Node, Pod
from podium.queues import build_hint_map, node_changes, pod_changes

_LABELS = {QueueingHint.QUEUE: "Queue", QueueingHint.SKIP: "Skip"}


@dataclass(frozen=True, slots=True)
class Change:
    """An object was added (`old` is None), deleted (`new` is None) or updated."""

    old: Any
    new: Any


def events_of(change: Change, release: Release) -> tuple[ClusterEvent, ...]:
    """Return the cluster events of a change; empty if it cannot make any pod schedulable."""
    item = change.new if change.new is not None else change.old
    if isinstance(item, Node):
        return _node_events(change.old, change.new)
    if isinstance(item, Pod):
        return _pod_events(change.old, change.new, release)
    resource = RESOURCES_BY_KIND.get(type(item).__name__)
    if resource is None:
        return ()
    return (ClusterEvent(resource, _action(change)),)


def _action(change: Change) -> ActionType:
    if change.old is None:
        return ActionType.ADD
    return ActionType.DELETE if change.new is None else ActionType.UPDATE


def _node_events(old: Node | None, new: Node | None) -> tuple[ClusterEvent, ...]:
    if old is None:
        return (NODE_ADD,)
    return (NODE_DELETE,) if new is None else node_changes(old, new)


def _pod_events(old: Pod | None, new: Pod | None, release: Release) -> tuple[ClusterEvent, ...]:
    if new is None:
        assert old is not None
        # As upstream's handler: only a pod that holds a node's resources frees any.
        return (ASSIGNED_POD_DELETE,) if old.node_name or old.status.nominated_node_name else ()
    if old is None:
        return (ASSIGNED_POD_ADD if new.node_name else ClusterEvent(release.events.unscheduled_pod, ActionType.ADD),)
    if new.node_name and not old.node_name:
        return (ASSIGNED_POD_ADD,)
    return pod_changes(old, new, release)


def hints_for(framework: Framework, pod: Pod, event: ClusterEvent, change: Change) -> dict[str, str]:
    """Return the queueing hint, Queue or Skip, of each plugin of the profile that has registered for the event."""
    hints: dict[str, str] = {}
    hint_map = build_hint_map(framework.plugins.values(), framework.release.events)
    for plugin, registrations in sorted(hint_map.items()):
        concerned = [registration for registration in registrations if registration.event.matches(event)]
        if concerned:
            hints[plugin] = _LABELS[_first_to_queue(concerned, pod, change)]
    return hints


def _first_to_queue(registrations: Sequence[EventRegistration], pod: Pod, change: Change) -> QueueingHint:
    for registration in registrations:
        if registration.hint is None:
            # A registration without a hint queues for every such event.
            return QueueingHint.QUEUE
        try:
            hint = registration.hint(pod, change.old, change.new)
        except BaseException:  # noqa: BLE001 - a failing hint counts as Queue, whatever it raises
            return QueueingHint.QUEUE
        if hint is QueueingHint.QUEUE:
            return hint
    return QueueingHint.SKIP
