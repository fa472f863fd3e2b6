"""Run the pods of a Job until enough of them have succeeded.

Source: kubernetes pkg/controller/job (v1.37.2); as upstream, a finalizer holds each pod until it has been counted.
Differs: no success policies, no limits for one index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from podium.sandbox.controllers.job_failures import JobBackoffs, has_failed, policy_action, replaces_failed_only
from podium.sandbox.controllers.pods import FINISHED, PODS, create_pod, is_active, is_ready, phase_of
from podium.sandbox.controllers.scale_down import job_victims
from podium.sandbox.errors import ApiError
from podium.sandbox.journal import Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

JOBS = resource_named("jobs")
TRACKING = "batch.kubernetes.io/job-tracking"
_INDEX = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def reconcile(store: Store, record: Record, pods: list[Record], backoffs: JobBackoffs) -> bool:
    """Count ended pods, create missing ones and write the status. Returns whether to retry without a further change."""
    job, spec = record.obj, record.obj["spec"]
    status = dict(job.get("status") or {})
    action = _count_ended(store, job, status, pods, backoffs)
    active = [pod for pod in pods if is_active(pod.obj)]
    if not is_over(status):
        is_overdue = seconds_left(store, job) == 0
        _conclude(store, spec, status, is_idle=not active, is_overdue=is_overdue, fails_by_policy=action == "FailJob")
    active_wanted = _active_wanted(spec, status, len(active))
    # The status was brought up to date first, since how many are wanted depends on it.
    victims = surplus(spec, active, active_wanted)
    for pod in victims:
        # A pod that the Job deletes itself is no failure, but those that still run when it fails are.
        store.delete_record(PODS, release(store, pod), {})
    if is_over(status):
        status["failed"] = status.get("failed", 0) + len(victims) * _is_failed(status)
        backoffs.forget(job["metadata"]["uid"])
    active = [pod for pod in active if pod not in victims]
    running, is_refused = len(active), False
    missing_count = active_wanted - running
    if replaces_failed_only(spec):
        missing_count -= sum("deletionTimestamp" in pod.obj["metadata"] for pod in pods if not _has_ended(pod.obj))
    try:
        for index in _missing_indexes(spec, status, active, missing_count) if not _waits(store, job, backoffs) else ():
            _create(store, job, index)
            running += 1
    except ApiError:
        is_refused = True
    status |= {"active": running, "ready": sum(is_ready(pod.obj) for pod in active)}
    status.setdefault("startTime", timestamp(store.now()))
    store.replace_record(JOBS, record, job | {"metadata": dict(job["metadata"]), "status": status})
    return is_refused


def _waits(store: Store, job: Json, backoffs: JobBackoffs) -> bool:
    """Return whether the Job creates no pods yet because some have failed."""
    backoff = backoffs.of(job["metadata"]["uid"])
    return backoff is not None and backoff.seconds_left(store.now()) > 0


def _has_ended(pod: Json) -> bool:
    return phase_of(pod) in FINISHED


def _is_failed(status: Json) -> bool:
    return any(condition["type"] == "Failed" for condition in status.get("conditions") or ())


def is_over(status: Json) -> bool:
    """Return whether a Job with this status has completed or failed."""
    conditions = status.get("conditions") or ()
    return any(
        condition["type"] in ("Complete", "Failed") and condition["status"] == "True" for condition in conditions
    )


def seconds_left(store: Store, job: Json) -> float | None:
    """Return the time until the deadline of a Job that has begun and is not over; None without a deadline."""
    status, deadline_s = job.get("status") or {}, (job.get("spec") or {}).get("activeDeadlineSeconds")
    if deadline_s is None or "startTime" not in status or is_over(status):
        return None
    start = datetime.fromisoformat(status["startTime"])
    return max(0.0, float(deadline_s) - (store.now() - start).total_seconds())


def release(store: Store, pod: Record) -> Record:
    """Remove the Job's finalizer from a pod."""
    metadata = pod.obj["metadata"]
    finalizers = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != TRACKING]
    return store.replace_record(PODS, pod, pod.obj | {"metadata": metadata | {"finalizers": finalizers}})


def _count_ended(store: Store, job: Json, status: Json, pods: list[Record], backoffs: JobBackoffs) -> str:
    """Count each pod that has ended, once: the finalizer marks those that are not counted yet.

    Returns "FailJob" if the pod failure policy ends the Job.
    """
    spec = job["spec"]
    pods_to_count = [
        pod
        for pod in pods
        if TRACKING in (pod.obj["metadata"].get("finalizers") or ())
        and (_has_ended(pod.obj) or has_failed(spec, pod.obj))
    ]
    candidates = [pod.obj for pod in pods_to_count if not is_over(status) and _has_place(spec, pod.obj)]
    successes = [pod for pod in candidates if phase_of(pod) == "Succeeded"]
    failures = [pod for pod in candidates if phase_of(pod) != "Succeeded"]
    backoffs.note(job["metadata"]["uid"], successes, failures)
    if _is_indexed(spec) and successes:
        indexes = {index for pod in successes if (index := index_of(pod)) is not None}
        completed_indexes = indexes_in(status.get("completedIndexes", "")) | indexes
        status |= {"completedIndexes": indexes_text(completed_indexes), "succeeded": len(completed_indexes)}
    elif successes:
        status["succeeded"] = status.get("succeeded", 0) + len(successes)
    actions = [policy_action(spec, pod) for pod in failures]
    if count := len(actions) - actions.count("Ignore"):
        status["failed"] = status.get("failed", 0) + count
    for pod in pods_to_count:
        release(store, pod)
    return "FailJob" if "FailJob" in actions else ""


def _has_place(spec: Json, pod: Json) -> bool:
    """Return whether the pod counts for the Job: that of an Indexed one needs an index below the completions."""
    index = index_of(pod)
    return not _is_indexed(spec) or (index is not None and index < spec.get("completions", 0))


def _conclude(
    store: Store, spec: Json, status: Json, *, is_idle: bool, is_overdue: bool, fails_by_policy: bool
) -> None:
    completions, successes = spec.get("completions"), status.get("succeeded", 0)
    time = timestamp(store.now())
    failure = ""
    if fails_by_policy:
        failure = "PodFailurePolicy"
    elif status.get("failed", 0) > spec.get("backoffLimit", 6):
        failure = "BackoffLimitExceeded"
    elif is_overdue:
        failure = "DeadlineExceeded"
    if failure:
        condition_types = [("FailureTarget", failure), ("Failed", failure)]
    # Without completions the first success ends the Job once no pod runs any more.
    elif successes >= completions if completions is not None else bool(successes and is_idle):
        condition_types = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
        status["completionTime"] = time
    else:
        return
    for kind, reason in condition_types:
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": time}
        status["conditions"] = with_condition(status.get("conditions") or [], condition)


def _active_wanted(spec: Json, status: Json, active: int) -> int:
    if is_over(status) or spec.get("suspend"):
        return 0
    parallelism: int = spec.get("parallelism", 1)
    # The pods that still run may finish, but no new ones are started.
    if spec.get("completions") is None:
        return min(active, parallelism) if status.get("succeeded") else parallelism
    missing: int = spec["completions"] - status.get("succeeded", 0)
    return min(parallelism, missing)


def surplus(spec: Json, active: list[Record], active_max: int) -> list[Record]:
    """Return the pods that a Job deletes: an Indexed one's superfluous or duplicate indexes first."""
    misplaced: list[Record] = []
    if _is_indexed(spec):
        indexes: set[int] = set()
        for pod in sorted(active, key=lambda candidate: candidate.revision):
            index = index_of(pod.obj)
            if index is None or index in indexes or index >= spec.get("completions", 0):
                misplaced.append(pod)
            else:
                indexes.add(index)
    well_placed = [pod for pod in active if pod not in misplaced]
    return [*misplaced, *job_victims(well_placed, max(0, len(well_placed) - active_max))]


def _missing_indexes(spec: Json, status: Json, active: list[Record], count: int) -> Iterable[int | None]:
    """Return the indexes of the pods to create; None is a pod without an index."""
    if not _is_indexed(spec):
        return [None] * count
    used_indexes = {index_of(pod.obj) for pod in active} | indexes_in(status.get("completedIndexes", ""))
    free = (index for index in range(spec.get("completions", 0)) if index not in used_indexes)
    return itertools.islice(free, max(0, count))


def _create(store: Store, job: Json, index: int | None) -> None:
    labels, name = _labels(job["metadata"]), job["metadata"]["name"]
    if index is None:
        create_pod(store, job, labels=labels, finalizers=[TRACKING])
        return
    mark = {_INDEX: str(index)}
    template = job["spec"]["template"]
    spec = {"hostname": f"{name}-{index}"} | template["spec"]
    for group in ("containers", "initContainers"):
        if spec.get(group):
            spec[group] = [_with_index_variable(container) for container in spec[group]]
    create_pod(
        store,
        job,
        template=template | {"spec": spec},
        prefix=f"{name}-{index}-",
        labels=labels | mark,
        annotations=mark,
        finalizers=[TRACKING],
    )


def _with_index_variable(container: Json) -> Json:
    variables = container.get("env") or []
    if any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
    return container | {"env": [*variables, {"name": _INDEX_VARIABLE, "valueFrom": source}]}


def _is_indexed(spec: Json) -> bool:
    return bool(spec.get("completionMode") == "Indexed")


def index_of(pod: Json) -> int | None:
    """Return the completion index of a pod, or None if it has none."""
    text = str((pod["metadata"].get("annotations") or {}).get(_INDEX, ""))
    return int(text) if text.isascii() and text.isdecimal() else None


def indexes_in(text: str) -> set[int]:
    """Return the indexes in a text such as `1,3-5,7`."""
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def indexes_text(indexes: Iterable[int]) -> str:
    """Write indexes as text, the reverse of `indexes_in`. Runs of three or more are written as ranges."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1][1:] = [index]
        else:
            runs.append([index])
    return ",".join(("-" if run[-1] - run[0] > 1 else ",").join(map(str, run)) for run in runs)


def _labels(metadata: Json) -> Json:
    name, uid = metadata["name"], metadata["uid"]
    modern = {"batch.kubernetes.io/job-name": name, "batch.kubernetes.io/controller-uid": uid}
    # The old labels, too: selectors of users still name them.
    return modern | {"job-name": name, "controller-uid": uid}
