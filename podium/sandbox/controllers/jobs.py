"""Run the pods of a Job until enough of them have succeeded.

Source: kubernetes pkg/controller/job (v1.36); a finalizer holds each pod until it has been counted, as upstream's does.
Differs: Indexed Jobs run as if they were NonIndexed; failed pods are replaced at once; no deadlines, no policies.
"""

from __future__ import annotations

from typing import Any

from podium.sandbox.controllers.pods import FINISHED, PODS, create_pod, is_active, is_ready, phase_of
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

JOBS = resource_named("jobs")
TRACKING = "batch.kubernetes.io/job-tracking"


def reconcile(store: Store, record: Record, pods: list[Record]) -> bool:
    """Count ended pods, create missing ones and write the status. Returns whether to retry without a further change."""
    job, spec = record.obj, record.obj["spec"]
    status = dict(job.get("status") or {})
    is_halted = is_over(status) or bool(spec.get("suspend"))
    for pod in pods:
        _count(store, pod, status, is_halted=is_halted)
    active = [pod for pod in pods if is_active(pod.obj)]
    if not is_over(status):
        _conclude(store, spec, status, is_idle=not active)
    wanted = _wanted(spec, status, len(active))
    for pod in active[wanted:]:
        store.delete_record(PODS, pod, {})
    active = active[:wanted]
    running, refused = len(active), False
    try:
        while running < wanted:
            create_pod(store, job, labels=_labels(job["metadata"]), finalizers=[TRACKING])
            running += 1
    except ApiError:
        refused = True
    status |= {"active": running, "ready": sum(is_ready(pod.obj) for pod in active)}
    status.setdefault("startTime", timestamp(store.now()))
    store.replace_record(JOBS, record, job | {"metadata": dict(job["metadata"]), "status": status})
    return refused


def is_over(status: Json) -> bool:
    """Whether a Job with this status has completed or failed."""
    conditions = status.get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def release(store: Store, pod: Record) -> Record:
    """Remove the Job's finalizer from a pod."""
    metadata = pod.obj["metadata"]
    finalizers = [each for each in metadata.get("finalizers") or () if each != TRACKING]
    return store.replace_record(PODS, pod, pod.obj | {"metadata": metadata | {"finalizers": finalizers}})


def _count(store: Store, pod: Record, status: Json, *, is_halted: bool) -> None:
    """Count a pod in the status, once: one that has ended, or that a client deleted before its end."""
    metadata = pod.obj["metadata"]
    if TRACKING not in (metadata.get("finalizers") or ()):
        return
    has_ended = phase_of(pod.obj) in FINISHED
    if not has_ended and "deletionTimestamp" not in metadata:
        return
    if has_ended or not is_halted:
        field = "succeeded" if phase_of(pod.obj) == "Succeeded" else "failed"
        status[field] = status.get(field, 0) + 1
    release(store, pod)


def _conclude(store: Store, spec: Json, status: Json, *, is_idle: bool) -> None:
    completions, succeeded = spec.get("completions"), status.get("succeeded", 0)
    now = timestamp(store.now())
    if status.get("failed", 0) > spec.get("backoffLimit", 6):
        added = [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    elif succeeded >= completions if completions is not None else bool(succeeded and is_idle):
        added = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
        status["completionTime"] = now
    else:
        return
    for kind, reason in added:
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": now}
        status["conditions"] = with_condition(status.get("conditions") or [], condition)


def _wanted(spec: Json, status: Json, active: int) -> int:
    if is_over(status) or spec.get("suspend"):
        return 0
    parallelism: int = spec.get("parallelism", 1)
    if spec.get("completions") is None:
        return min(active, parallelism) if status.get("succeeded") else parallelism
    missing: int = spec["completions"] - status.get("succeeded", 0)
    return min(parallelism, missing)


def _labels(metadata: Json) -> Json:
    name, uid = metadata["name"], metadata["uid"]
    modern = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid}
    return modern | {"job-name": name, "controller-uid": uid}
