"""The ends of pods on nodes, and what the objects say about their times.

A time is only given where an object has one: the deletion timestamp of a pod that is terminating, and the deadlines of
pods and Jobs that have started. It is the latest time: the pod may end before.

Source: kubernetes v1.36.2, pkg/kubelet/active_deadline.go, pkg/controller/job/job_controller.go (pastActiveDeadline).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from podium.engine.cluster import stays_on_node
from podium.engine.derivation.control_objects import ControlObjects, count_at, items_at, mapping_at
from podium.objects.core import Pod
from podium.objects.times import format_time, time_or_none

_GRACE_S: Final = 30
"""The grace period of a pod that names none."""
_RUN_TO_COMPLETION: Final = ("Never", "OnFailure")
_NO_DEADLINE: Final = -1


@dataclass(frozen=True, slots=True)
class PodEnd:
    """The end of a pod on a node.

    Attributes:
        pod: its namespace and name.
        node: its node.
        reason: why it ends.
        at_s: the latest time, in seconds since the epoch; None if no object says when.
    """

    pod: str
    node: str
    reason: str
    at_s: float | None = None

    @property
    def time(self) -> str:
        """The latest time in RFC 3339; "" if no object says when."""
        return "" if self.at_s is None else format_time(self.at_s)

    def as_dict(self) -> dict[str, Any]:
        """Return the end as JSON values."""
        return {"pod": self.pod, "node": self.node, "reason": self.reason} | ({"by": self.time} if self.time else {})


def grace_s(pod: Pod) -> int:
    """Return the seconds that the pod may take to end once it is deleted."""
    grace = pod.spec.termination_grace_period_seconds
    return _GRACE_S if grace is None else max(grace, 0)


def pod_end(pod: Pod, now_s: float) -> PodEnd | None:
    """Return the end that the pod itself announces; None if it announces none.

    A time that has passed has not been kept, so that no time is known any more.
    """
    if pod.is_terminating:
        return _not_before(now_s, pod, "it is being deleted", time_or_none(pod.metadata.deletion_timestamp))
    deadline_s = pod.spec.active_deadline_seconds
    if deadline_s is not None and (started_s := time_or_none(pod.status.start_time)) is not None:
        return _not_before(
            now_s, pod, f"its activeDeadlineSeconds of {deadline_s}", started_s + deadline_s, grace_s(pod)
        )
    if pod.spec.restart_policy in _RUN_TO_COMPLETION and not stays_on_node(pod):
        return PodEnd(pod.key, pod.node_name, f"it runs to completion (restartPolicy {pod.spec.restart_policy})")
    return None


def job_deadlines(objects: ControlObjects, now_s: float) -> Mapping[str, float]:
    """Return the time of the deadline of each Job that has one before it and is not over, by the Job's key.

    At its deadline a Job deletes its pods.
    """
    deadlines: dict[str, float] = {}
    for key, job in objects.of_kind("Job").items():
        seconds = count_at(job, "spec", "activeDeadlineSeconds", default=_NO_DEADLINE)
        started_s = time_or_none(mapping_at(job, "status").get("startTime"))
        is_over = any(
            condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
            for condition in items_at(job, "status", "conditions")
        )
        if seconds != _NO_DEADLINE and started_s is not None and not is_over and started_s + seconds >= now_s:
            deadlines[key] = started_s + seconds
    return deadlines


def job_reason(key: str) -> str:
    """Return why a pod ends at the deadline of its Job."""
    return f"the activeDeadlineSeconds of Job {key}"


def _not_before(now_s: float, pod: Pod, reason: str, at_s: float | None, delay_s: float = 0.0) -> PodEnd:
    if at_s is None:
        return PodEnd(pod.key, pod.node_name, reason)
    if at_s + delay_s < now_s:
        return PodEnd(pod.key, pod.node_name, f"{reason}, which was due by {format_time(at_s + delay_s)}")
    return PodEnd(pod.key, pod.node_name, reason, at_s + delay_s)
