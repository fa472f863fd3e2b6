"""Composes patches for a pod's status.

Owns the decision whether the status changes, and the patch for the change. Never sends it.

Source: kubernetes pkg/scheduler/schedule_one.go (updatePod) and pkg/api/v1/pod/util.go (UpdatePodCondition), v1.36.2.
Differs: the patch contains the pod's uid, so that it cannot hit another pod of the same name; a message is cut after
256 KiB.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.binder.events.event import truncate
from podium.objects.core import Pod, PodCondition
from podium.objects.pod_groups import PodGroup
from podium.objects.times import format_time

POD_SCHEDULED = "PodScheduled"
_UNSCHEDULABLE = "Unschedulable"
_SCHEDULER_ERROR = "SchedulerError"

MESSAGE_BYTES_MAX = 256 * 1024
"""A longer message would exceed the API server's request size limit, however long the plugins' reasons are."""

_encode = msgspec.json.Encoder().encode


def not_scheduled(pod: Pod, message: str, *, is_rejected: bool) -> PodCondition:
    """Build the condition of a pod whose attempt ended in a rejection, or in an error."""
    return PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=_UNSCHEDULABLE if is_rejected else _SCHEDULER_ERROR,
        message=truncate(message, MESSAGE_BYTES_MAX),
        observed_generation=pod.metadata.generation,
    )


def changes_status(pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None) -> bool:
    """Return whether `status_patch` would change anything. A new `observed_generation` alone is not a change."""
    return _changes_nominated_node(pod, nominated_node_name) or (
        condition is not None and _changes_condition(pod.status.condition(condition.type), condition)
    )


def status_patch(
    pod: Pod, now_s: float, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
) -> bytes | None:
    """Compose a strategic merge patch for the status subresource.

    Args:
        pod: as last seen.
        now_s: the transition time, in seconds since the epoch, if the condition's status changes.
        condition: the condition to set; None leaves the conditions unchanged. Its own transition time is ignored.
        nominated_node_name: the nominated node to set, "" clears it; None leaves it unchanged.

    Returns:
        None if nothing would change; see `changes_status`.
    """
    status: dict[str, Any] = {}
    if condition is not None:
        old_condition = pod.status.condition(condition.type)
        if _changes_condition(old_condition, condition):
            status["conditions"] = [{**_as_json(old_condition, condition, now_s), "lastProbeTime": None}]
    if _changes_nominated_node(pod, nominated_node_name):
        status["nominatedNodeName"] = nominated_node_name or None
    return _encode({"metadata": {"uid": pod.uid}, "status": status}) if status else None


def condition_removal(pod: Pod, kind: str) -> bytes:
    """Compose a strategic merge patch for the status subresource that removes the condition of that type."""
    return _encode({"metadata": {"uid": pod.uid}, "status": {"conditions": [{"$patch": "delete", "type": kind}]}})


def pod_group_status_patch(group: PodGroup, now_s: float, condition: PodCondition) -> bytes | None:
    """Compose a strategic merge patch that sets a condition of a pod group.

    Args:
        group: as last seen.
        now_s: as `status_patch`.

    Returns:
        None if nothing would change.
    """
    old_condition = group.condition(condition.type)
    is_known = old_condition is not None and _is_same(old_condition, condition)
    if old_condition is not None and is_known and old_condition.observed_generation == condition.observed_generation:
        return None
    status = {"conditions": [_as_json(old_condition, condition, now_s)]}
    return _encode({"metadata": {"uid": group.metadata.uid}, "status": status})


def _changes_nominated_node(pod: Pod, node_name: str | None) -> bool:
    return node_name is not None and node_name != pod.status.nominated_node_name


def _changes_condition(old_condition: PodCondition | None, condition: PodCondition) -> bool:
    return old_condition is None or not _is_same(old_condition, condition)


def _is_same(old_condition: PodCondition, condition: PodCondition) -> bool:
    fields = old_condition.status, old_condition.reason, old_condition.message
    return fields == (condition.status, condition.reason, condition.message)


def _as_json(old_condition: PodCondition | None, condition: PodCondition, now_s: float) -> dict[str, Any]:
    is_same_status = old_condition is not None and old_condition.status == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
        "lastTransitionTime": old_condition.last_transition_time
        if old_condition is not None and is_same_status
        else format_time(now_s),
    }
