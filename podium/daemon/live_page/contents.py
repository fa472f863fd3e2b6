"""Reads the contents of the live page off the scheduler on request: pods of the queue, attempts, nodes.

Never keeps the scheduler from anything else: whatever may be long is read in pieces, with pauses in between.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from anyio.lowlevel import checkpoint

from podium.cluster import Cache
from podium.cluster.snapshot import Snapshot
from podium.daemon.live_page.node_devices import NodeDevices
from podium.daemon.live_page.tables import Row, Table
from podium.daemon.queue_page import sendable
from podium.engine.flight_recorder import FlightRecorder, RecordedAttempt, Result
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import Clock
from podium.objects.resource_names import CPU, MEMORY
from podium.objects.times import time_or_none
from podium.objects.tolerations import taint_text
from podium.objects.topology_labels import ZONE
from podium.queues import QueueListing, QueueState

QUEUE_COLUMNS: Final = (
    "namespace",
    "name",
    "queue",
    "priority",
    "attempts",
    "nominated",
    "since",
    "created",
    "plugins",
    "reason",
    "next",
    "events",
)
DECISION_COLUMNS: Final = (
    "at",
    "namespace",
    "name",
    "attempt",
    "result",
    "node",
    "feasible",
    "examined",
    "nodes",
    "decision",
    "total",
    "message",
)
NODE_COLUMNS: Final = (
    "zone",
    "cpu",
    "cpu_max",
    "memory",
    "memory_max",
    "pods",
    "pods_max",
    "closed",
    "taints",
    "others",
    "devices",
)
SHOWN_MAX: Final = 200
"""The number of pods shown of each state, the longest-waiting ones, and of attempts, the latest ones."""
_SHOWN_ALONE: Final = frozenset({CPU, MEMORY, "pods"})
_LOOKED_AT_MAX: Final = 1000
_LISTED_MAX: Final = 50
_REASON_MAX: Final = 500
_NODES_S_MAX: Final = 2.0


async def node_rows(snapshot: Snapshot, node_devices: NodeDevices | None = None) -> dict[str, Row]:
    """Return the requests of each node's pods and what the node offers, by `NODE_COLUMNS`. Units: cpu in milli.

    `others` has all other resources, such as extended ones: by name the requested and the allocatable amount.
    `devices` has by driver the number of devices that are allocated, and of all that the node can reach.
    """
    # As Python lists in one step: indexing an array cell by cell takes ten times as long.
    columns = [
        column[snapshot.order].tolist()
        for column in (
            snapshot.requested(CPU),
            snapshot.allocatable(CPU),
            snapshot.requested(MEMORY),
            snapshot.allocatable(MEMORY),
            snapshot.pod_count,
            snapshot.allowed_pods,
        )
    ]
    # Taken at once: the snapshot goes on during the pauses.
    nodes, reason_of = [snapshot.nodes[row] for row in snapshot.order.tolist()], snapshot.closed
    entries = list(zip(snapshot.order.tolist(), nodes, *columns, strict=True))
    devices = None if node_devices is None else node_devices.cluster_devices()
    rows: dict[str, Row] = {}
    for start in range(0, len(entries), _LOOKED_AT_MAX):
        for row, node, *amounts in entries[start : start + _LOOKED_AT_MAX]:
            assert node is not None, "the order has only rows of nodes"
            reason = reason_of.get(row, "") or ("cordoned" if node.spec.unschedulable else "")
            extra_amounts = {
                sendable(name): (snapshot.requested_on(row, name), snapshot.allocatable_on(row, name))
                for name in node.status.allocatable
                if name not in _SHOWN_ALONE
            }
            taints = [sendable(taint_text(taint)) for taint in node.spec.taints]
            zone = node.metadata.labels.get(ZONE, "")
            device_counts = {} if devices is None or node_devices is None else node_devices.on_node(devices, node)
            rows[node.name] = (zone, *amounts, sendable(reason), taints, extra_amounts, device_counts)
        await checkpoint()
    if node_devices is not None:
        node_devices.forget_others(rows)
    return rows


class QueueRows:
    """The pods that wait or are in flight, by `QUEUE_COLUMNS`; described anew only after something happened to them."""

    def __init__(self, listing: QueueListing) -> None:
        self._listing = listing
        self._known: dict[str, tuple[object, Row]] = {}

    async def read(self) -> tuple[Mapping[str, int], Mapping[str, Row]]:
        """Return the number of pods in each state and, by UID, the `SHOWN_MAX` pods of each state that wait longest."""
        infos_by_state: dict[QueueState, list[QueuedPodInfo]] = {state: [] for state in QueueState}
        infos = self._listing.infos()
        for start in range(0, len(infos), _LOOKED_AT_MAX):
            for info in infos[start : start + _LOOKED_AT_MAX]:
                infos_by_state[self._listing.state_of(info)].append(info)
            await checkpoint()
        del infos_by_state[QueueState.GONE]
        entries: dict[str, tuple[object, Row]] = {}
        for state_infos in infos_by_state.values():
            first_infos = heapq.nsmallest(SHOWN_MAX, state_infos, key=lambda info: info.timestamp_s)
            for start in range(0, len(first_infos), _LISTED_MAX):
                for info in first_infos[start : start + _LISTED_MAX]:
                    entries[info.pod.uid] = self._row(info)
                await checkpoint()
        self._known = entries
        counts = {state.value: len(infos) for state, infos in infos_by_state.items()}
        return counts, {uid: row for uid, (_, row) in entries.items()}

    def _row(self, info: QueuedPodInfo) -> tuple[object, Row]:
        raw = info.transitions.raw
        # Describing a pod writes its reasons out; two reads a second would do that for pods that only wait.
        mark = (self._listing.state_of(info), info.attempts, raw[-1] if raw else None)
        former_row = self._known.get(info.pod.uid)
        if former_row is not None and former_row[0] == mark:
            return former_row
        entry = self._listing.describe(info)
        plugins = dict.fromkeys((*entry.unschedulable_plugins, *entry.pending_plugins))
        next_try = None if entry.state is QueueState.ACTIVE else entry.next_try
        return mark, (
            entry.pod.metadata.namespace,
            entry.pod.metadata.name,
            entry.state.value,
            entry.pod.priority,
            entry.attempts,
            entry.nominated_node_name,
            entry.queued_s,
            time_or_none(entry.pod.metadata.creation_timestamp),
            [entry.gating_plugin] if entry.gating_plugin else list(plugins),
            sendable(entry.reason[:_REASON_MAX]),
            None if next_try is None else next_try.at_s,
            {} if next_try is None else next_try.events,
        )


class DecisionRows:
    """The last attempts, by `DECISION_COLUMNS`."""

    def __init__(self, recorder: FlightRecorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._seen = -1
        self._may_change = False
        self._known: dict[str, Row] = {}

    def read(self) -> Mapping[str, Row] | None:
        """Return the attempts by their number, or None if nothing has happened since the last call."""
        newest = self._recorder.newest_sequence
        if newest == self._seen and not self._may_change:
            return None
        self._seen = newest
        attempts = list(islice(self._recorder.newest_first(), SHOWN_MAX))
        # Attempts that are being bound still change, without a new number.
        self._may_change = any(attempt.result is Result.BINDING for attempt in attempts)
        self._known = {str(attempt.sequence): self._row(attempt) for attempt in reversed(attempts)}
        return self._known

    def _row(self, attempt: RecordedAttempt) -> Row:
        former_row = self._known.get(str(attempt.sequence))
        # The wall clock may have been set meanwhile: a time that was shown stays.
        at_s = former_row[0] if former_row else self._clock.now() - self._clock.monotonic() + attempt.started_s
        return (
            at_s,
            attempt.namespace,
            attempt.name,
            attempt.attempt,
            attempt.result.value,
            attempt.node,
            attempt.feasible,
            attempt.examined,
            attempt.node_count,
            attempt.decision_s,
            attempt.total_s,
            sendable(attempt.message[:_REASON_MAX]),
        )


class Versions(NamedTuple):
    """The versions up to which a reader has read."""

    queue: int = 0
    decisions: int = 0
    nodes: int = 0


class Contents:
    """All that the page shows, as it was when it was read last.

    Args:
        recorder: None if it is off; then no attempts are shown.
        leader: the replica that schedules in place of this one.
        node_devices: counts devices; None shows none.
    """

    def __init__(
        self,
        cache: Cache,
        listing: QueueListing,
        recorder: FlightRecorder | None,
        clock: Clock,
        leader: Callable[[], str | None],
        node_devices: NodeDevices | None = None,
    ) -> None:
        self.read_s = 0.0
        self.counts: Mapping[str, int] = {}
        self.leader: str | None = None
        self.queue = Table(*QUEUE_COLUMNS)
        self.decisions = Table(*DECISION_COLUMNS)
        self.nodes = Table(*NODE_COLUMNS)
        self._cache = cache
        self._clock = clock
        self._leader = leader
        self._node_devices = node_devices
        self._queue_rows = QueueRows(listing)
        self._recorder = recorder
        self._decision_rows = None if recorder is None else DecisionRows(recorder, clock)
        self._nodes_read = (-1, 0.0)

    @property
    def versions(self) -> Versions:
        """The versions of the tables."""
        return Versions(self.queue.version, self.decisions.version, self.nodes.version)

    @property
    def attempts(self) -> int:
        """The number of attempts that this process has decided."""
        return 0 if self._recorder is None else self._recorder.newest_sequence

    async def read(self) -> None:
        """Read everything anew.

        Cost: 3 ms for each 1,000 pods in the queue, 5 ms for 200 new attempts, and 12 ms for 5,000 nodes if one has
        changed; all in pieces.
        """
        self.counts, pods = await self._queue_rows.read()
        self.queue.replace(pods)
        if self._decision_rows is not None and (attempts := self._decision_rows.read()) is not None:
            self.decisions.replace(attempts)
            await checkpoint()
        # While an attempt holds the snapshot, changes wait: it is read again a little later though nothing has changed.
        changes, read_s, now_s = *self._nodes_read, self._clock.monotonic()
        if self._cache.changes != changes or now_s - read_s >= _NODES_S_MAX:
            self._nodes_read = self._cache.changes, now_s
            self.nodes.replace(await node_rows(self._cache.snapshot(), self._node_devices))
            await checkpoint()
        self.leader = self._leader()
        self.read_s = self._clock.now()
