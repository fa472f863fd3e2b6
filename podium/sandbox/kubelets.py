"""Stand-in kubelets: one task that marks nodes ready, runs the pods bound to them and lets deleted pods go."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Any

from podium.sandbox.errors import ApiError
from podium.sandbox.journal import DELETED, Collection, Key, Record
from podium.sandbox.pods import with_condition
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store, timestamp

Json = dict[str, Any]

_PODS = resource_named("pods")
_NODES = resource_named("nodes")


class Kubelets:
    """Plays the kubelet of every node.

    Args:
        delay_s: from a binding to Running, and from a deletion to the pod's end.
        heartbeat_s: how often nodes refresh their Ready condition; None for never.
    """

    def __init__(self, store: Store, *, delay_s: float, heartbeat_s: float | None = None) -> None:
        self._store = store
        self._delay_s = delay_s
        self._heartbeat_s = heartbeat_s
        self._wake = asyncio.Event()
        self._due: list[tuple[float, int, Key]] = []
        self._order = count()
        self._addresses = count(1)

    async def run(self) -> None:
        """Work until cancelled."""
        loop = asyncio.get_running_loop()
        pods = _Feed(self._store.collection(_PODS))
        nodes = _Feed(self._store.collection(_NODES))
        beat_at = loop.time() + (self._heartbeat_s or 0)
        with pods.waking(self._wake), nodes.waking(self._wake):
            while True:
                self._wake.clear()
                for record in nodes.read():
                    self._make_ready(record)
                for record in pods.read():
                    if _needs_work(record.obj):
                        heapq.heappush(self._due, (loop.time() + self._delay_s, next(self._order), record.key))
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

    def _work(self, now: float) -> None:
        records = self._store.collection(_PODS).records
        while self._due and self._due[0][0] <= now:
            record = records.get(heapq.heappop(self._due)[2])
            if record is None or not _needs_work(record.obj):
                continue
            if "deletionTimestamp" in record.obj["metadata"]:
                self._store.delete_record(_PODS, record, {"gracePeriodSeconds": 0})
            else:
                self._start(record)

    def _start(self, record: Record) -> None:
        pod = record.obj
        now = timestamp(self._store.now())
        number = next(self._addresses)
        address = f"10.{64 + (number >> 16) % 64}.{(number >> 8) % 256}.{number % 256}"
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        conditions = status.get("conditions") or []
        for kind in ("Initialized", "ContainersReady", "Ready"):
            conditions = with_condition(conditions, {"type": kind, "status": "True", "lastTransitionTime": now})
        running = {
            "phase": "Running",
            "conditions": conditions,
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "containerStatuses": [_running(container, now) for container in spec.get("containers") or ()],
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

    def _make_ready(self, record: Record) -> None:
        conditions = (record.obj.get("status") or {}).get("conditions") or []
        if not any(condition.get("type") == "Ready" for condition in conditions):
            self._report_ready(record)

    def _beat(self) -> None:
        for record in list(self._store.collection(_NODES).records.values()):
            self._report_ready(record)

    def _report_ready(self, record: Record) -> None:
        now = timestamp(self._store.now())
        status = record.obj.get("status") or {}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "the stand-in kubelet is ready",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
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


class _Feed:
    """The records of a collection that are new or changed since the last reading; at first, all."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._cursor = -1

    def waking(self, event: asyncio.Event) -> _Listening:
        """Set the event at every change, within the context."""
        return _Listening(self._collection, event)

    def read(self) -> list[Record]:
        """What to look at now. Objects that are gone are left out."""
        try:
            changes = self._collection.changes_from(self._cursor) if self._cursor >= 0 else None
        except ApiError:  # the history has moved on without us
            changes = None
        self._cursor = self._collection.end
        if changes is None:
            return list(self._collection.records.values())
        return [change.record for change in changes if change.type != DELETED]


class _Listening:
    def __init__(self, collection: Collection, event: asyncio.Event) -> None:
        self._collection = collection
        self._listener = event.set

    def __enter__(self) -> None:
        self._collection.listeners[self._listener] = None

    def __exit__(self, *_: object) -> None:
        self._collection.listeners.pop(self._listener, None)


def _needs_work(pod: Json) -> bool:
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    metadata = pod["metadata"]
    if "deletionTimestamp" in metadata:
        return bool(metadata.get("deletionGracePeriodSeconds"))
    return (pod.get("status") or {}).get("phase") in (None, "Pending")


def _running(container: Json, now: str) -> Json:
    return {
        "name": container.get("name", ""),
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
