"""The failures of a Job's pods: which ones count, and how long the Job waits before it replaces them.

Source: kubernetes pkg/controller/job/{backoff_utils,pod_failure_policy}.go (v1.37.2).
Differs: no limits for one index, so the action FailIndex counts as Count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from podium.sandbox.controllers.pods import phase_of

Json = dict[str, Any]

_BACKOFF_S: Final = 10.0
_BACKOFF_S_MAX: Final = 600.0
_DOUBLINGS_MAX: Final = 6
"""The number of doublings after which the backoff has its maximum."""


@dataclass(frozen=True, slots=True)
class JobBackoff:
    """The failures of a Job since its last success, and the time of the last one."""

    failures: int
    last_failure: datetime

    def seconds_left(self, time: datetime) -> float:
        """Return the time until the Job creates pods again."""
        wait_s = min(_BACKOFF_S * 2.0 ** min(self.failures - 1, _DOUBLINGS_MAX), _BACKOFF_S_MAX)
        return max(0.0, wait_s - (time - self.last_failure).total_seconds())


class JobBackoffs:
    """The backoffs of Jobs by UID, kept in memory as upstream keeps them: a restart forgets them."""

    def __init__(self) -> None:
        self._backoffs: dict[str, JobBackoff] = {}

    def of(self, uid: str) -> JobBackoff | None:
        """Return the backoff of a Job; None if no pod has failed since its last success."""
        return self._backoffs.get(uid)

    def forget(self, uid: str) -> None:
        """Note that the Job is over."""
        self._backoffs.pop(uid, None)

    def note(self, uid: str, successes: Collection[Json], failures: Iterable[Json]) -> None:
        """Note pods that have ended since the last sync. A success forgives the failures until then."""
        failure_times = sorted(map(_end_time, failures))
        former = self._backoffs.get(uid)
        count = 0 if former is None else former.failures
        if successes:
            self._backoffs.pop(uid, None)
            last_success = max(map(_end_time, successes))
            count, failure_times = 0, [time for time in failure_times if time > last_success]
        if failure_times:
            self._backoffs[uid] = JobBackoff(count + len(failure_times), failure_times[-1])


def replaces_failed_only(spec: Json) -> bool:
    """Return whether the Job replaces a pod only once it has failed, and not already once it is being deleted."""
    default = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    return bool(spec.get("podReplacementPolicy", default) == "Failed")


def policy_action(spec: Json, pod: Json) -> str:
    """Return the action of the first rule of the Job's pod failure policy that the failed pod matches; "" if none."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        if "onExitCodes" in rule:
            is_match = _matches_exit_code(rule["onExitCodes"], pod)
        else:
            is_match = any(_has_condition(pod, pattern) for pattern in rule.get("onPodConditions") or ())
        if is_match:
            return str(rule.get("action", ""))
    return ""


def _matches_exit_code(requirement: Json, pod: Json) -> bool:
    status, values = pod.get("status") or {}, requirement.get("values") or ()
    for container in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
        # Only failures match, also with NotIn.
        is_selected = requirement.get("containerName") in (None, container.get("name"))
        if code and is_selected and (code in values) == (requirement.get("operator") == "In"):
            return True
    return False


def _has_condition(pod: Json, pattern: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    key = pattern.get("type"), pattern.get("status", "True")
    return any((condition.get("type"), condition.get("status")) == key for condition in conditions)


def _end_time(pod: Json) -> datetime:
    """Return when the pod ended: by its containers, its Ready condition, its deletion, or at last its creation."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    states = [container.get("state") or {} for container in status.get("containerStatuses") or ()]
    ends = [str((state.get("terminated") or {}).get("finishedAt") or "") for state in states]
    if ends and all(ends):
        return max(map(datetime.fromisoformat, ends))
    for condition in status.get("conditions") or ():
        if (
            condition.get("type") == "Ready"
            and condition.get("status") == "False"
            and "lastTransitionTime" in condition
        ):
            return datetime.fromisoformat(condition["lastTransitionTime"])
    if "deletionTimestamp" in metadata:
        grace = timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
        return datetime.fromisoformat(metadata["deletionTimestamp"]) - grace
    return datetime.fromisoformat(metadata["creationTimestamp"])


def has_failed(spec: Json, pod: Json) -> bool:
    """Return whether a Job counts the pod as failed; one that is being deleted counts unless it is replaced later."""
    phase = phase_of(pod)
    is_leaving = "deletionTimestamp" in pod["metadata"] and phase != "Succeeded"
    return phase == "Failed" or (is_leaving and not replaces_failed_only(spec))
