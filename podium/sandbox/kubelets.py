"""Stand-in kubelets: one task that marks nodes ready, runs the pods bound to them and removes deleted pods."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import Any

from podium.sandbox.feeds import Feed
from podium.sandbox.journal import DELETED, Key, Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

_PODS = resource_named("pods")
_NODES = resource_named("nodes")
# The next action of a kubelet for a pod.
_START, _SUCCEED, _FAIL, _END = "start", "succeed", "fail", "end"
_PAST_DEADLINE: Json = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}
_TERMINATED = 143
"""The exit code of a container that SIGTERM has ended."""


class Kubelets:
    """Stands in for the kubelet of every node.

    Args:
        delay_s: the time from a binding to Running, from a deletion to the pod's removal, and from a pod's deadline
            (`activeDeadlineSeconds`) to its failure.
        job_s: how long the pods of Jobs run until they succeed; None for ever.
        heartbeat_s: the interval at which nodes refresh their Ready condition; None for never.
        ending_s: returns how long a pod takes to end that is to end from a loop time on; None for `delay_s`.
    """

    def __init__(
        self,
        store: Store,
        *,
        delay_s: float,
        job_s: float | None,
        heartbeat_s: float | None,
        ending_s: Callable[[Json, float], float] | None = None,
    ) -> None:
        self._store = store
        self._delays_s = {_START: delay_s, _SUCCEED: job_s}
        self._ending_s = ending_s or (lambda _pod, _since_s: delay_s)
        self._heartbeat_s = heartbeat_s
        self._wake = asyncio.Event()
        self._due: list[tuple[float, int, Key, str]] = []
        self._order = count()
        # A counter, since entries of equal time must not be compared by their pods.
        self._addresses = count(1)

    async def run(self) -> None:
        """Act on nodes and pods until cancelled."""
        loop = asyncio.get_running_loop()
        pods = Feed(self._store.collection(_PODS))
        nodes = Feed(self._store.collection(_NODES))
        beat_at = loop.time() + (self._heartbeat_s or 0)
        with pods.waking(self._wake.set), nodes.waking(self._wake.set):
            while True:
                # Cleared before reading: a change in between sets it again.
                self._wake.clear()
                for change in nodes.read():
                    if change.type != DELETED:
                        self._make_ready(change.record)
                for change in pods.read():
                    if change.type != DELETED:
                        self._plan(change.record, loop.time())
                self._work(loop.time())
                if self._heartbeat_s is not None and loop.time() >= beat_at:
                    self._beat()
                    beat_at = loop.time() + self._heartbeat_s
                deadlines = [entry[0] for entry in self._due[:1]]
                if self._heartbeat_s is not None:
                    deadlines.append(beat_at)
                await self._wait_until(min(deadlines, default=None))

    async def _wait_until(self, deadline: float | None) -> None:
        timer = None
        if deadline is not None:
            timer = asyncio.get_running_loop().call_at(deadline, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    def _plan(self, record: Record, time_s: float) -> None:
        step = _next_step(record.obj)
        delay_s = self._ending_s(record.obj, time_s) if step == _END else self._delays_s.get(step)
        if delay_s is not None:
            heapq.heappush(self._due, (time_s + delay_s, next(self._order), record.key, step))
        if (left_s := self._seconds_left(record.obj)) is not None:
            due_s = time_s + left_s + self._ending_s(record.obj, time_s + left_s)
            heapq.heappush(self._due, (due_s, next(self._order), record.key, _FAIL))

    def _seconds_left(self, pod: Json) -> float | None:
        """Return the time until the deadline of a running pod; None without a deadline."""
        deadline_s, status = (pod.get("spec") or {}).get("activeDeadlineSeconds"), pod.get("status") or {}
        if deadline_s is None or status.get("phase") != "Running" or "startTime" not in status:
            return None
        start = datetime.fromisoformat(status["startTime"])
        return max(0.0, float(deadline_s) - (self._store.now() - start).total_seconds())

    def _work(self, time_s: float) -> None:
        records = self._store.collection(_PODS).records
        while self._due and self._due[0][0] <= time_s:
            _, _, key, step = heapq.heappop(self._due)
            record = records.get(key)
            # The pod has changed since the step was planned, and has another step by now.
            is_current = record is not None and (
                self._seconds_left(record.obj) == 0.0 if step == _FAIL else _next_step(record.obj) == step
            )
            if record is None or not is_current:
                continue
            if step == _END:
                # One that a finalizer holds is seen to have ended, and counts on its node no more.
                if record.obj["metadata"].get("finalizers") and _is_running(record.obj):
                    record = self._finish(record, "Failed", "PodFailed")
                self._store.delete_record(_PODS, record, {"gracePeriodSeconds": 0})
            elif step == _START:
                self._start(record)
            elif step == _FAIL:
                self._finish(record, "Failed", "DeadlineExceeded", _PAST_DEADLINE)
            else:
                self._finish(record, "Succeeded", "PodCompleted")

    def _start(self, record: Record) -> None:
        pod = record.obj
        time = timestamp(self._store.now())
        number = next(self._addresses)
        address = f"10.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        conditions = status.get("conditions") or []
        for kind in ("Initialized", "ContainersReady", "Ready"):
            conditions = with_condition(conditions, {"type": kind, "status": "True", "lastTransitionTime": time})
        running = {
            "phase": "Running",
            "conditions": conditions,
            "startTime": time,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "containerStatuses": [_running_state(container, time) for container in spec.get("containers") or ()],
        }
        self._store.replace_record(
            _PODS,
            record,
            pod
            | {
                "metadata": dict(pod["metadata"]),
                "status": status | running,
            },
        )

    def _finish(self, record: Record, phase: str, reason: str, why: Json | None = None) -> Record:
        pod = record.obj
        status = pod.get("status") or {}
        time = timestamp(self._store.now())
        conditions = status.get("conditions") or []
        for kind in ("ContainersReady", "Ready"):
            condition = {"type": kind, "status": "False", "reason": reason, "lastTransitionTime": time}
            conditions = with_condition(conditions, condition)
        exit_code = 0 if phase == "Succeeded" else _TERMINATED
        containers = [
            _terminated_state(container, time, exit_code) for container in status.get("containerStatuses") or ()
        ]
        ending: Json = {"phase": phase, "conditions": conditions, "containerStatuses": containers} | (why or {})
        return self._store.replace_record(
            _PODS, record, pod | {"metadata": dict(pod["metadata"]), "status": status | ending}
        )

    def _make_ready(self, record: Record) -> None:
        conditions = (record.obj.get("status") or {}).get("conditions") or []
        # A node that a test has set to not ready stays so.
        if not any(condition.get("type") == "Ready" for condition in conditions):
            self._report_ready(record)

    def _beat(self) -> None:
        for record in list(self._store.collection(_NODES).records.values()):
            self._report_ready(record)

    def _report_ready(self, record: Record) -> None:
        time = timestamp(self._store.now())
        status = record.obj.get("status") or {}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the stand-in kubelet is ready",
            "lastHeartbeatTime": time,
            "lastTransitionTime": time,
        }
        conditions = with_condition(status.get("conditions") or [], ready)
        self._store.replace_record(
            _NODES,
            record,
            record.obj
            | {
                "metadata": dict(record.obj["metadata"]),
                "status": status | {"conditions": conditions},
            },
        )


def _next_step(pod: Json) -> str:
    if not (pod.get("spec") or {}).get("nodeName"):
        return ""
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    if "deletionTimestamp" in metadata:
        return _END if metadata.get("deletionGracePeriodSeconds") else ""
    if phase in (None, "Pending"):
        return _START
    is_of_job = any(owner.get("kind") == "Job" for owner in metadata.get("ownerReferences") or ())
    return _SUCCEED if phase == "Running" and is_of_job else ""


def _running_state(container: Json, time: str) -> Json:
    return {
        "name": container.get("name", ""),
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": time}},
    }


def _is_running(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Pending", "Running")


def _terminated_state(container: Json, time: str, exit_code: int) -> Json:
    terminated = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": time,
        "finishedAt": time,
    }
    return container | {"ready": False, "started": False, "state": {"terminated": terminated}}
