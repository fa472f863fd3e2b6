"""Builds the Events about scheduling.

Owns the text of each Event. Never sends one: the recorder does.

Source: kubernetes pkg/scheduler/schedule_one.go and framework/preemption/executor.go, v1.36.2; client-go v0.36
tools/leaderelection/resourcelock/leaselock.go.
Differs: a note is cut between characters, so that it stays valid UTF-8.
"""

from __future__ import annotations

from msgspec import Struct

from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup
from podium.objects.resource_types import POD_GROUPS, ResourceType

NOTE_BYTES_MAX = 1024
_ELLIPSIS = " ..."
_NORMAL = "Normal"
_WARNING = "Warning"


class ObjectReference(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The object that an Event is about; the namespace of a cluster-scoped one is empty."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Event(Struct, frozen=True, gc=False):
    """An Event to record about an object.

    `reporting_controller` is the scheduler name of the profile. An Event with `is_unique` cannot repeat for the
    same object, so the recorder does not remember it.
    """

    reporting_controller: str
    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None
    is_unique: bool = False

    @property
    def identity(self) -> tuple[str, str, str, str, ObjectReference, ObjectReference | None]:
        """The fields that all Events of one series share: all but the note."""
        return self.reporting_controller, self.type, self.reason, self.action, self.regarding, self.related


def reference_to(pod: Pod) -> ObjectReference:
    """Build a reference to this version of the pod."""
    metadata = pod.metadata
    return ObjectReference("v1", "Pod", metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)


def reference_to_group(group: PodGroup, groups: ResourceType[PodGroup] = POD_GROUPS) -> ObjectReference:
    """Build a reference to this version of the pod group; `groups` is the resource as the API server serves it."""
    metadata = group.metadata
    return ObjectReference(
        groups.api_version,
        groups.kind,
        metadata.name,
        metadata.namespace,
        metadata.uid,
        metadata.resource_version,
    )


def scheduled_event(pod: Pod, node_name: str) -> Event:
    """Build the Event of a bound pod."""
    note = f"Successfully assigned {pod.key} to {node_name}"
    return Event(
        pod.spec.scheduler_name, reference_to(pod), _NORMAL, "Scheduled", "Binding", truncate(note), is_unique=True
    )


def failed_scheduling(pod: Pod, message: str) -> Event:
    """Build the Event of a failed attempt to schedule the pod, from the message of its status."""
    regarding = reference_to(pod)
    return Event(pod.spec.scheduler_name, regarding, _WARNING, "FailedScheduling", "Scheduling", truncate(message))


def deleting_pod_skipped(pod: Pod) -> Event:
    """Build the Event of a pod that was popped while it was being deleted."""
    return failed_scheduling(pod, f"skip schedule deleting pod: {pod.key}")


def preempted_event(
    victim: Pod,
    preemptor: Pod,
    node_name: str,
    *,
    group: PodGroup | None = None,
    groups: ResourceType[PodGroup] = POD_GROUPS,
    in_memory: bool = False,
) -> Event:
    """Build the Event of a victim of preemption.

    Args:
        group: the preemptor's group, if the preemption is for all of it.
        groups: PodGroups as the API server serves them.
        in_memory: the victim was not bound yet, and was rejected instead of deleted.
    """
    cause = f"pod {preemptor.uid}" if group is None else f"podgroup {group.metadata.uid}"
    note = f"Preempted by {cause} on node {node_name}"
    if in_memory:
        note += " (in kube-scheduler memory)."
    return Event(
        preemptor.spec.scheduler_name,
        reference_to(victim),
        _NORMAL,
        "Preempted",
        "Preempting",
        truncate(note),
        reference_to(preemptor) if group is None else reference_to_group(group, groups),
    )


def plugin_event(pod: Pod, reason: str, note: str, action: str, *, is_warning: bool) -> Event:
    """Build an Event that a plugin records about the pod."""
    event_type = _WARNING if is_warning else _NORMAL
    reason, action = encodable(reason), encodable(action)
    return Event(pod.spec.scheduler_name, reference_to(pod), event_type, reason, action, truncate(note))


def leader_election(reporting_controller: str, lease: ObjectReference, note: str) -> Event:
    """Build the Event of a replica that has started or stopped leading."""
    reason = "LeaderElection"
    return Event(reporting_controller, lease, _NORMAL, reason, reason, truncate(note), is_unique=True)


def configuration_reload(reporting_controller: str, own_pod: ObjectReference, note: str, *, is_refused: bool) -> Event:
    """Build the Event about the scheduler's own pod: it has applied, or refused, a changed configuration."""
    event_type, reason = (_WARNING, "ConfigurationRefused") if is_refused else (_NORMAL, "ConfigurationReloaded")
    return Event(reporting_controller, own_pod, event_type, reason, "Reloading", truncate(note), is_unique=True)


def encodable(text: str) -> str:
    """Replace characters that UTF-8 cannot encode, such as lone surrogates in an exception's message."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def truncate(note: str, bytes_max: int = NOTE_BYTES_MAX) -> str:
    """Cut the note if it exceeds the limit."""
    if note.isascii() and len(note) <= bytes_max:
        return note
    content = note.encode(errors="replace")
    if len(content) > bytes_max:
        return content[: bytes_max - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS
    return content.decode()
