"""Notes down every attempt, and finds those that somebody asks about."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.engine.flight_recorder.attempts import RESULTS, Details, RecordedAttempt
from podium.engine.flight_recorder.entry import FIXED_BYTES, SCHEDULED, Entry, NodeNames
from podium.engine.flight_recorder.observer import AttemptObserver, Seconds
from podium.engine.flight_recorder.ring import PENDING_MAX, Ring
from podium.engine.pod_group_cycle import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis, Rejection
from podium.framework.cycle.schedule import Suggested
from podium.objects.core import Pod, PodSpec

MEMORY_BYTES_MIN: Final = 1 << 20
"""Less would not hold the names of the nodes of a large cluster."""
_OPEN_MAX: Final = 10_000
_MESSAGE_MAX: Final = 4000
"""Longer messages are cut: a plugin's reason has no length limit."""
_NUMBER_OF: Final = {each.value: number for number, each in enumerate(RESULTS)}


class FlightRecorder(AttemptObserver):
    """Keeps the last attempts within a number of bytes.

    Attempts that found a node and those that did not are kept apart, each within half of the memory: thousands of
    scheduled pods must not displace the only attempt at a pending one.

    Cost: one call for a decision and one for its end, and for many attempts together the sealing of a segment. A
    decision's arrays are referred to, not copied.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._placed, self._rejected = Ring(memory_bytes // 2), Ring(memory_bytes // 2)
        self._sequence = 0
        self._open: dict[str, Entry] = {}
        self._names = NodeNames()
        self._order: Rows | None = None
        self._last_rejected: dict[int, tuple[PodSpec, int]] = {}

    @property
    def attempts(self) -> int:
        """How many attempts are kept."""
        return self._placed.attempts + self._rejected.attempts

    @property
    def newest_sequence(self) -> int:
        """How many attempts this process has decided, and the number of the last one."""
        return self._sequence

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self._placed.nbytes + self._rejected.nbytes

    # ------------------------------------------------------------ hearing of attempts

    def decided(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: Seconds
    ) -> None:
        """Note down the decision. If the pod was placed, this calls no function unless a node was added."""
        snapshot = cycle.snapshot
        if snapshot.order is not self._order and not snapshot.is_fork:
            self._learn_names(snapshot)
        diagnosis, meta = cycle.diagnosis, cycle.pod.metadata
        size, number = FIXED_BYTES, -1
        if decision.__class__ is Suggested:
            ring, scored, node_name = self._placed, cycle.scored, decision.node_name
            examined, feasible = decision.evaluated_nodes, decision.feasible_nodes
        else:
            ring, scored, node_name = self._rejected, None, ""
            examined, feasible = diagnosis.rejected_count, 0
        if scored is not None:
            size += scored.rows.nbytes + scored.total.nbytes + scored.raw.nbytes
            for plugin in scored.weighted:
                size += scored.weighted[plugin].nbytes
        for rejection in diagnosis.rejections:
            size += rejection.rows.nbytes + rejection.verdicts.nbytes
        is_large = size > ring.pending_bytes_max or not self._names.names
        if is_large:
            scored, size = None, FIXED_BYTES
        if ring.count == PENDING_MAX or ring.pending_bytes + size > ring.pending_bytes_max:
            self._seal(ring)
        if not is_large and (diagnosis.rejections or diagnosis.single or not node_name):
            known = -1 if node_name else self._number_of_same(cycle.pod, diagnosis)
            number = ring.diagnosis_count if known < 0 else known
            if known < 0:
                ring.diagnoses[number] = diagnosis
                ring.diagnosis_count = number + 1
            else:
                size = FIXED_BYTES
        self._sequence += 1
        ring.entries[ring.count] = self._open[meta.uid] = Entry(
            self._sequence,
            meta.namespace,
            meta.name,
            meta.uid,
            cycle.framework.name,
            info.attempts,
            started_s,
            seconds,
            node_name,
            examined,
            feasible,
            snapshot.order.size,
            info.transitions.raw[:],
            self._names,
            scored,
            number,
        )
        ring.count += 1
        ring.pending_bytes += size

    def bound(self, pod: Pod, seconds: Seconds) -> None:
        """Note that the pod was bound."""
        uid = pod.metadata.uid
        if uid in self._open:
            entry = self._open[uid]
            del self._open[uid]
            entry.result, entry.total_s = SCHEDULED, seconds
            if entry.segment is not None:
                self._placed.end(entry)

    def failed(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """Note why the pod was not scheduled."""
        entry = self._open.pop(pod.uid, None)
        if entry is not None:
            entry.result, entry.total_s = _NUMBER_OF[result], seconds
            entry.message = message[:_MESSAGE_MAX]
            ring = self._placed if entry.node else self._rejected
            ring.end(entry)

    def _number_of_same(self, pod: Pod, diagnosis: Diagnosis) -> int:
        """The number of a diagnosis that replicas share because they were rejected alike; -1 if there is none yet."""
        ring, spec = self._rejected, pod.spec
        if not ring.count:
            self._last_rejected.clear()
        known = self._last_rejected.get(id(spec))
        if known is not None and _is_same(ring.diagnoses[known[1]], diagnosis):
            return known[1]
        self._last_rejected[id(spec)] = spec, ring.diagnosis_count
        return -1

    def _seal(self, ring: Ring) -> None:
        ring.seal()
        if len(self._open) > _OPEN_MAX:
            # Attempts that were abandoned when the pod was deleted or bound by others have no end.
            self._open.clear()

    def _learn_names(self, snapshot: Snapshot) -> None:
        """Note the names of the nodes by row; attempts before a row changed hands keep the names that they saw."""
        self._order = snapshot.order
        names = ["" if node is None else node.name for node in snapshot.nodes]
        if not self._names.learn(names):
            self._placed.seal()
            self._rejected.seal()
            self._names = NodeNames()
            self._names.learn(names)
        if self._names.nbytes > self._placed.limit_bytes // 2:
            # Without the names of its nodes an attempt is kept without what it found out about them.
            self._names = NodeNames()
        self._placed.use(self._names)
        self._rejected.use(self._names)

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str = "", name: str = "", result: str = "") -> Iterator[RecordedAttempt]:
        """The recorded attempts at such pods; "" for any."""
        found = [ring.newest_first(namespace, name, result) for ring in (self._placed, self._rejected)]
        return heapq.merge(*found, key=lambda each: -each.sequence)

    def details(self, attempt: RecordedAttempt) -> Details | None:
        """What the attempt found out about nodes; None if that is no longer kept."""
        return (self._placed if attempt.node else self._rejected).details(attempt.sequence)


def _is_same(one: Diagnosis | None, other: Diagnosis) -> bool:
    return (
        one is not None
        and not one.single
        and not other.single
        and one.absent == other.absent
        and len(one.rejections) == len(other.rejections)
        and all(_are_same(a, b) for a, b in zip(one.rejections, other.rejections, strict=True))
    )


def _are_same(one: Rejection, other: Rejection) -> bool:
    return (
        np.array_equal(one.rows, other.rows)
        and np.array_equal(one.verdicts, other.verdicts)
        and (one.meanings is other.meanings or one.counted() == other.counted())
    )
