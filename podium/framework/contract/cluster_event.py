"""Cluster events that may make a pod schedulable, and how plugins register for them with queueing hints.

The actions are those of the newest release; a registration for a resource of pods covers its name in other releases.

Source: staging kube-scheduler/framework/types.go and pkg/scheduler/framework/events.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from podium.objects.core import Pod
from podium.objects.resource_types import CustomEventResource, EventResource


class ActionType(enum.IntFlag):
    """The changes to a resource, one bit for each. The bits are upstream's."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_NODE_PREEMPTION_POLICY = 256
    UPDATE_POD_LABEL = 512
    UPDATE_POD_SCALE_DOWN = 1024
    UPDATE_POD_SCALE_UP = 2048
    UPDATE_POD_TOLERATION = 4096
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 8192
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 16384
    UPDATE = 32764
    ALL = 32767


_ACTION_LABELS = {
    ActionType.ADD: "Add",
    ActionType.DELETE: "Delete",
    ActionType.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    ActionType.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    ActionType.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    ActionType.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    ActionType.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    ActionType.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    ActionType.UPDATE_NODE_PREEMPTION_POLICY: "UpdateNodePreemptionPolicy",
    ActionType.UPDATE_POD_LABEL: "UpdatePodLabel",
    ActionType.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    ActionType.UPDATE_POD_SCALE_UP: "UpdatePodScaleUp",
    ActionType.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    ActionType.UPDATE: "Update",
    ActionType.ALL: "All",
}


RESOURCES_BY_KIND: Final[Mapping[str, EventResource]] = {
    resource.value.rpartition("/")[2]: resource
    for resource in EventResource
    if resource is not EventResource.COSCHEDULING_POD_GROUP
}
"""The resource by the kind of its objects, such as `CSINode`; a kind of two groups is that of `scheduling.k8s.io`."""

_WAITING = frozenset({EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD, EventResource.UNSCHEDULABLE_POD})
_POD_KINDS = _WAITING | {EventResource.POD, EventResource.ASSIGNED_POD}
_COVERED: Final[Mapping[EventResource | CustomEventResource, frozenset[EventResource]]] = {
    EventResource.POD: _POD_KINDS,
    EventResource.UNSCHEDULABLE_POD: _WAITING,
    EventResource.UNSCHEDULED_POD: frozenset({EventResource.UNSCHEDULED_POD, EventResource.UNSCHEDULABLE_POD}),
    EventResource.TARGET_POD: frozenset({EventResource.TARGET_POD, EventResource.UNSCHEDULABLE_POD}),
}
"""By the resource of a registration for pods: the resources of the events that it covers besides its own."""


@dataclass(frozen=True)
class ClusterEvent:
    """A resource and the change to it.

    `custom_label` is the metric label of events that are not a change of an object.
    """

    resource: EventResource | CustomEventResource
    action: ActionType
    custom_label: str = ""

    @cached_property
    def _hash(self) -> int:
        return hash((self.resource, self.action, self.custom_label))

    def __hash__(self) -> int:
        # Events are looked up for each pod, and hashing an Enum runs Python code.
        return self._hash

    @cached_property
    def label(self) -> str:
        """The name in metrics and logs, such as `NodeAdd` or `AssignedPodUpdatePodLabel`."""
        return self.custom_label or f"{self.resource.value}{_ACTION_LABELS[self.action]}"

    @property
    def description(self) -> str:
        """The resource and each of the actions, such as `Node Add, UpdateNodeLabel`."""
        actions, labels = self.action, []
        for action in (ActionType.ALL, ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, *_ACTION_LABELS):
            if actions and action in actions:
                labels.append(_ACTION_LABELS[action])
                actions &= ~action
        return f"{self.resource.value} {', '.join(labels)}"

    @property
    def is_about_pods(self) -> bool:
        """The object that changed is a pod."""
        return self.resource in _POD_KINDS

    @property
    def is_wildcard(self) -> bool:
        """The event matches every change of every resource."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def matches(self, incoming: ClusterEvent) -> bool:
        """Return True if this event, as a registration, covers the incoming event."""
        if self.is_wildcard:
            return True
        covers_resource = self.resource in (EventResource.WILDCARD, incoming.resource) or (
            incoming.resource in _COVERED.get(self.resource, ())
        )
        return covers_resource and bool(self.action & incoming.action) and int(incoming.action) <= int(self.action)


NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
CONFIGURATION_RELOAD = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ConfigurationReload")


class QueueingHint(enum.Enum):
    """A plugin's answer to whether an event should requeue a pod that it rejected."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


HintFunction: TypeAlias = Callable[[Pod, Any, Any], QueueingHint]
"""(pod, old object, new object) → whether the pod may be schedulable now. A hint that raises counts as QUEUE."""


class HintScope(enum.Enum):
    """The parts of the waiting pod that a hint reads, besides whether the event is about that very pod.

    Pods with equal parts get the same answer, so the hint is called for one of them only.
    """

    SPEC = enum.auto()
    """`pod.spec` and the namespace."""
    LABELS = enum.auto()
    """`pod.spec`, the namespace and the labels."""
    ANYTHING = enum.auto()


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event that may make pods schedulable that the plugin rejected. Without a hint it always requeues them."""

    event: ClusterEvent
    hint: HintFunction | None = None
    scope: HintScope = HintScope.ANYTHING

    def __post_init__(self) -> None:
        """Refuse a registration that could never match or be called.

        Raises:
            TypeError: names the field.
        """
        for field, value, kind in (
            ("event", self.event, ClusterEvent),
            ("event.resource", getattr(self.event, "resource", None), EventResource | CustomEventResource),
            ("event.action", getattr(self.event, "action", None), ActionType),
            ("sees", self.scope, HintScope),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"EventRegistration.{field} is not {getattr(kind, '__name__', kind)}")
        if self.hint is not None and not callable(self.hint):
            raise TypeError("EventRegistration.hint is not a function")


def on(
    resource: EventResource | str,
    *actions: ActionType,
    hint: HintFunction | None = None,
    scope: HintScope = HintScope.ANYTHING,
) -> EventRegistration:
    """Register for some actions on a resource.

    Args:
        resource: for a custom resource its `<plural>.<version>.<group>`.

    Raises:
        ValueError: the text has another form.
    """
    combined = ActionType(0)
    for action in actions:
        combined |= action
    if isinstance(resource, str):
        if resource.count(".") < 2:
            raise ValueError(f"expected <plural>.<version>.<group> such as quotas.v1.example.com, got {resource!r}")
        return EventRegistration(ClusterEvent(CustomEventResource(resource), combined), hint, scope)
    return EventRegistration(ClusterEvent(resource, combined), hint, scope)


_EVERYTHING = (
    EventResource.POD,
    EventResource.NODE,
    EventResource.PERSISTENT_VOLUME,
    EventResource.PERSISTENT_VOLUME_CLAIM,
    EventResource.CSI_NODE,
    EventResource.CSI_DRIVER,
    EventResource.CSI_STORAGE_CAPACITY,
    EventResource.STORAGE_CLASS,
    EventResource.RESOURCE_CLAIM,
    EventResource.DEVICE_CLASS,
)
ALL_EVENTS = tuple(on(resource, ActionType.ALL) for resource in _EVERYTHING)
"""The default registrations of a plugin that does not override `events_to_register`."""
