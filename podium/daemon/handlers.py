"""Event handlers of the informers: apply each change to the cache and requeue pods that wait for it.

Handlers update state and wake the loop; they never schedule and never wait.

Source: kubernetes pkg/scheduler/eventhandlers.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cache
from podium.framework.contract.cluster_event import NODE_ADD, NODE_DELETE, ActionType, ClusterEvent
from podium.framework.profile.runtime import Framework
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects import resource_types
from podium.objects.claims import ResourceClaim, ResourceClaimStatus
from podium.objects.core import Node, Pod
from podium.objects.devices import DeviceClass, DeviceTaintRule
from podium.objects.errors import FieldError
from podium.objects.node_metrics import NODE_METRICS
from podium.objects.resource_types import CustomEventResource, EventResource, KubeObject, ResourceType
from podium.objects.unreadable import kind_of, unread_field
from podium.objects.wire import BrokenObject
from podium.queues import SchedulingQueue, node_changes
from podium.telemetry import Metrics

log = get_logger("informers")

_SLICES_CHANGED = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.UPDATE)

_KEY_LENGTH_SHOWN = 320


class MeasuredHandler:
    """Handles events and observes how long each takes."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics

    def measure(self, event: str, handle: Callable[..., None], *objects: Any, before_s: float = 0.0) -> float:
        """Call the handler, and return the observed seconds, including `before_s`."""
        started_s = self._clock.monotonic()
        handle(*objects)
        seconds = before_s + self._clock.monotonic() - started_s
        self._metrics.observe_event(event, seconds)
        return seconds

    def on_broken(self, broken: BrokenObject) -> None:
        """Report an object that cannot be decoded at all; its last readable version stays in use."""
        self._metrics.count_broken_object(broken.kind)
        log.error(
            "Object cannot be read", kind=broken.kind, object=broken.key[:_KEY_LENGTH_SHOWN], detail=broken.detail
        )


class BrokenObjects:
    """Reports objects with an unreadable field. Implements `podium.cluster.cache.ReportBroken`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, item: KubeObject, error: FieldError) -> None:
        """Report the error once."""
        kind = kind_of(item)
        closed_node = item.node_name if isinstance(item, Pod) else item.name if isinstance(item, Node) else ""
        self._metrics.count_broken_object(kind)
        log.error(
            "Object has a field that cannot be read",
            kind=kind,
            object=item.key,
            field=error.path,
            error=str(error),
            **({"node_closed": closed_node} if closed_node else {}),
        )


class NodeHandler(MeasuredHandler):
    """Handles nodes that are added, updated or deleted."""

    def __init__(self, cache: Cache, queue: SchedulingQueue, clock: Clock, metrics: Metrics) -> None:
        super().__init__(clock, metrics)
        self._cache = cache
        self._queue = queue
        self._unusable: set[str] = set()

    def on_add(self, new: Node) -> None:
        """Handle an added node."""
        self.measure("NodeAdd", self._add, new)

    def on_update(self, old: Node, new: Node) -> None:
        """Handle an updated node; a heartbeat alone is not an event."""
        started_s = self._clock.monotonic()
        events = self._taken_in(old, new)
        before_s = self._clock.monotonic() - started_s
        for event, old_part, new_part in events:
            self.measure(event.label, self._queue.move_all, event, old_part, new_part, before_s=before_s)

    def on_delete(self, old: Node) -> None:
        """Handle a deleted node."""
        self.measure("NodeDelete", self._delete, old)

    def _add(self, node: Node) -> None:
        if self._put_node(node):
            self._queue.move_all(NODE_ADD, None, node)

    def _taken_in(self, old: Node, new: Node) -> list[tuple[ClusterEvent, Node | None, Node | None]]:
        """Update the cache, and return the events for waiting pods, each with the old and the new object."""
        was_unusable = new.name in self._unusable
        if not self._put_node(new):
            return [] if was_unusable else [(NODE_DELETE, old, None)]
        if was_unusable:
            return [(NODE_ADD, None, new)]
        return [(event, old, new) for event in node_changes(old, new)]

    def _put_node(self, node: Node) -> bool:
        """Add the node to the cache, and return whether pods can be scheduled on it."""
        is_usable = self._cache.put_node(node)
        if is_usable:
            self._unusable.discard(node.name)
        else:
            self._unusable.add(node.name)
        return is_usable

    def _delete(self, node: Node) -> None:
        if node.name not in self._unusable:
            self._queue.move_all(NODE_DELETE, node, None)
        self._unusable.discard(node.name)
        self._cache.remove_node(node.name)


class ResourceHandler(MeasuredHandler):
    """Handles objects of any other kind: their changes matter only to waiting pods."""

    def __init__(
        self, resource: EventResource | CustomEventResource, queue: SchedulingQueue, clock: Clock, metrics: Metrics
    ) -> None:
        super().__init__(clock, metrics)
        self._queue = queue
        self._report_broken = BrokenObjects(metrics)
        self._added = ClusterEvent(resource, ActionType.ADD)
        self._updated = ClusterEvent(resource, ActionType.UPDATE)
        self._deleted = ClusterEvent(resource, ActionType.DELETE)

    def on_add(self, new: KubeObject) -> None:
        """Handle an added object."""
        self._report(None, new)
        self.measure(self._added.label, self._queue.move_all, self._added, None, new)

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        """Handle an updated object."""
        self._report(old, new)
        self.measure(self._updated.label, self._queue.move_all, self._updated, old, new)

    def _report(self, old: KubeObject | None, new: KubeObject) -> None:
        """Report the unreadable field of a partial object, unless it was reported already."""
        unread = unread_field(new)
        if unread is not None:
            former_error = None if old is None else unread_field(old)
            if former_error is None or (former_error.path, former_error.detail) != (unread.path, unread.detail):
                self._report_broken(new, unread)

    def on_delete(self, old: KubeObject) -> None:
        """Handle a deleted object."""
        self.measure(self._deleted.label, self._queue.move_all, self._deleted, old, None)


class ResourceClaimHandler(ResourceHandler):
    """Handles claims. A claim has lost its allocation before it is gone, though a new list does not show that.

    A finalizer keeps an allocated claim until then.
    """

    def on_delete(self, old: KubeObject) -> None:
        """Handle a deleted claim."""
        if isinstance(old, ResourceClaim) and old.status.allocation is not None:
            self.on_update(old, replace(old, status=ResourceClaimStatus()))
        super().on_delete(old)


class DeviceTaintRuleHandler(MeasuredHandler):
    """Handles rules that taint devices: for waiting pods, slices have changed.

    Differs: upstream sends an event for each slice whose taints changed; podium sends one for every change of a rule.
    """

    def __init__(self, queue: SchedulingQueue, clock: Clock, metrics: Metrics) -> None:
        super().__init__(clock, metrics)
        self._queue = queue

    def on_add(self, new: DeviceTaintRule) -> None:
        """Handle an added rule."""
        del new
        self._slices_changed()

    def on_update(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        """Handle a changed rule; a change may concern only its status, which counts evictions."""
        if old.spec != new.spec:
            self._slices_changed()

    def on_delete(self, old: DeviceTaintRule) -> None:
        """Handle a deleted rule."""
        del old
        self._slices_changed()

    def _slices_changed(self) -> None:
        self.measure(_SLICES_CHANGED.label, self._queue.move_all, _SLICES_CHANGED, None, None)


class DeviceClassHandler:
    """Drops cached answers about nodes: which resources are left to devices depends on the classes.

    Args:
        frameworks: the profiles at any time; they may be replaced.
    """

    def __init__(self, frameworks: Collection[Framework]) -> None:
        self._frameworks = frameworks

    def on_add(self, new: DeviceClass) -> None:
        """Handle an added class."""
        del new
        self._forget()

    def on_update(self, old: DeviceClass, new: DeviceClass) -> None:
        """Handle a changed class."""
        if old.spec.extended_resource_name != new.spec.extended_resource_name:
            self._forget()

    def on_delete(self, old: DeviceClass) -> None:
        """Handle a deleted class."""
        del old
        self._forget()

    def on_broken(self, broken: BrokenObject) -> None:
        """Report a class that cannot be decoded: its earlier state, if there is one, stays in use."""

    def _forget(self) -> None:
        for framework in self._frameworks:
            framework.signatures.forget()


RESOURCE_EVENTS: Mapping[ResourceType[Any], EventResource | CustomEventResource] = {
    resource: resource.event
    for resource in (*resource_types.ALL, NODE_METRICS)
    if resource.event is not None and resource not in (resource_types.PODS, resource_types.NODES)
}
"""The resources besides pods and nodes whose changes may make a pod schedulable; custom resources have their own."""
