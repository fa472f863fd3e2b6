"""Records every attempt, and finds recorded ones by pod."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.engine.flight_recorder.attempts import RESULTS, Details, RecordedAttempt
from podium.engine.flight_recorder.node_names import NodeNames
from podium.engine.flight_recorder.observer import AttemptObserver, Seconds
from podium.engine.flight_recorder.ring import Ring
from podium.engine.flight_recorder.segment import ATTEMPTS_MAX, FIXED_BYTES, SCHEDULED, SCORED_BYTES, Segment
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.schedule import Suggested
from podium.framework.cycle.scored import Scored
from podium.framework.profile.rejection import Rejection
from podium.framework.profile.score_history import ScoreHistory
from podium.objects.core import Pod, PodSpec

MEMORY_BYTES_MIN: Final = 1 << 20
"""Less would not hold the names of the nodes of a large cluster."""
_OPEN_MAX: Final = 10_000
_MESSAGE_MAX: Final = 4000
"""Longer messages are cut: a plugin's reason has no length limit."""
_NUMBER_OF: Final = {result.value: number for number, result in enumerate(RESULTS)}


class FlightRecorder(AttemptObserver):
    """Keeps the last attempts within a number of bytes.

    Attempts that found a node and those that did not are kept apart, each within half of the memory: thousands of
    scheduled pods must not displace the only attempt at a pending one.

    Cost: one call for a decision, and one for its end. Scores are referred to, not copied; the rest is encoded when a
    segment is full, or read.
    """

    def __init__(self, memory_bytes: int) -> None:
        # Halves, so that a storm of rejections cannot push out the placements, nor these the rejections.
        self._placed, self._rejected = Ring(memory_bytes // 2), Ring(memory_bytes // 2)
        self._sequence = 0
        self._open: dict[str, tuple[Ring, Segment, int]] = {}
        self._names = NodeNames()
        self._order: Rows | None = None
        self._last_rejected: dict[int, tuple[PodSpec, int]] = {}

    @property
    def attempts(self) -> int:
        """The number of attempts that are kept."""
        return self._placed.attempts + self._rejected.attempts

    @property
    def newest_sequence(self) -> int:
        """The number of attempts that this process has decided, which is also the number of the last one."""
        return self._sequence

    @property
    def nbytes(self) -> int:
        """The size of all kept attempts."""
        return self._placed.nbytes + self._rejected.nbytes

    # ------------------------------------------------------------ recording

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: Seconds
    ) -> None:
        """Record the decision. For a placed pod this calls hardly any function, unless a node was added."""
        snapshot = cycle.snapshot
        if snapshot.order is not self._order and not snapshot.is_fork:
            self._learn_names(snapshot)
        diagnosis, meta = cycle.diagnosis, cycle.pod.metadata
        if decision.__class__ is Suggested:
            ring, record, node_name = self._placed, cycle.scored, decision.node_name
            examined_count, feasible = decision.evaluated_nodes, decision.feasible_nodes
        else:
            ring, record, node_name = self._rejected, None, ""
            examined_count, feasible = diagnosis.rejected_count, 0
        history: ScoreHistory | None = None
        score_bytes = history_bytes = rejection_bytes = 0
        if record is not None:
            history, score_bytes = record.history, SCORED_BYTES
            history_bytes = 0 if history is None else history.nbytes
            if record.rows.base is None:
                score_bytes += record.rows.nbytes
            if record.computed or record.extended is not None:
                score_bytes += _bytes_computed(record)
        if diagnosis.rejections:
            rejection_bytes = _bytes_rejected(diagnosis)
        # One huge attempt must not push out all others; without its details it is still listed.
        has_details = self._names.names and score_bytes + history_bytes + rejection_bytes <= ring.pending_bytes_max
        if not has_details:
            record = history = None
            score_bytes = history_bytes = rejection_bytes = 0
        segment, size = ring.newest, FIXED_BYTES + score_bytes + rejection_bytes
        added_bytes = 0 if history in segment.histories else history_bytes
        if segment.count == ATTEMPTS_MAX or ring.pending_bytes + size + added_bytes > ring.pending_bytes_max:
            self._seal(ring)
            segment, added_bytes = ring.newest, history_bytes
        if added_bytes:
            segment.histories.add(history)
            size += added_bytes
        position = segment.count
        is_explained = has_details and (diagnosis.rejections or diagnosis.single or not node_name)
        if is_explained and self._keep_diagnosis(segment, cycle, is_rejected=not node_name):
            size -= rejection_bytes
        self._sequence += 1
        head = (
            self._sequence,
            meta.namespace,
            meta.name,
            meta.uid,
            cycle.framework.name,
            info.attempts,
            started_s,
            seconds,
            node_name,
            examined_count,
            feasible,
            snapshot.order.size,
            (*info.transitions.raw,),
        )
        segment.heads.append(head)
        segment.scored[position] = record
        segment.score_bytes += score_bytes
        segment.count, segment.last = position + 1, self._sequence
        ring.pending_bytes += size
        self._open[meta.uid] = ring, segment, position

    def on_bound(self, pod: Pod, seconds: Seconds) -> None:
        """Record that the pod was bound."""
        uid = pod.metadata.uid
        if uid in self._open:
            _, segment, position = self._open[uid]
            del self._open[uid]
            segment.results[position], segment.total_s[position] = SCHEDULED, seconds

    def on_failure(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """Record why the pod was not scheduled."""
        if pod.uid in self._open:
            ring, segment, position = self._open.pop(pod.uid)
            ring.end(segment, position, _NUMBER_OF[result], seconds, message[:_MESSAGE_MAX])

    def _keep_diagnosis(self, segment: Segment, cycle: Cycle, *, is_rejected: bool) -> bool:
        """Keep why nodes were rejected; return whether a replica of the pod was rejected for the same reasons."""
        number = self._number_of_same(cycle.pod, cycle.diagnosis) if is_rejected else -1
        is_known = number >= 0
        if not is_known:
            number = len(segment.diagnoses)
            segment.diagnoses.append(cycle.diagnosis)
        segment.diagnosis_of[segment.count] = number
        return is_known

    def _number_of_same(self, pod: Pod, diagnosis: Diagnosis) -> int:
        """Return the number of an equal diagnosis of a replica; -1 if no replica has one yet."""
        # The entries hold numbers of this segment, and the spec, so that its id cannot be that of another.
        segment, spec = self._rejected.newest, pod.spec
        if not segment.count:
            self._last_rejected.clear()
        entry = self._last_rejected.get(id(spec))
        if entry is not None and _is_same(segment.diagnoses[entry[1]], diagnosis):
            return entry[1]
        self._last_rejected[id(spec)] = spec, len(segment.diagnoses)
        return -1

    def _seal(self, ring: Ring) -> None:
        ring.seal()
        if len(self._open) > _OPEN_MAX:
            # Attempts that were abandoned when the pod was deleted or bound by others have no end.
            self._open.clear()

    def _learn_names(self, snapshot: Snapshot) -> None:
        """Note the names of the nodes by row. Attempts before a row got another node keep the old names."""
        self._order = snapshot.order
        names = ["" if node is None else node.name for node in snapshot.nodes]
        if not self._names.learn(names):
            self._placed.seal()
            self._rejected.seal()
            self._names = NodeNames()
            self._names.learn(names)
        if self._names.nbytes > self._placed.limit_bytes // 2:
            # The names would take too much memory; without them an attempt is kept without details on nodes.
            self._names = NodeNames()
        self._placed.use(self._names, snapshot.order.nbytes)
        self._rejected.use(self._names, 0)

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str = "", name: str = "", result: str = "") -> Iterator[RecordedAttempt]:
        """Return the recorded attempts at the pods with these values, the newest first; "" matches any."""
        attempts_by_ring = [ring.newest_first(namespace, name, result) for ring in (self._placed, self._rejected)]
        return heapq.merge(*attempts_by_ring, key=lambda attempt: -attempt.sequence)

    def details(self, attempt: RecordedAttempt) -> Details | None:
        """Return the attempt's verdicts and scores; None if they are no longer kept."""
        return (self._placed if attempt.node else self._rejected).details(attempt.sequence)


def _bytes_rejected(diagnosis: Diagnosis) -> int:
    return sum(rejection.rows.nbytes + rejection.verdicts.nbytes for rejection in diagnosis.rejections)


def _bytes_computed(record: Scored) -> int:
    """Return the size of the scores that the attempt itself has computed or received from extenders."""
    nbytes = len(record.computed) * (SCORED_BYTES + record.rows.size)
    return nbytes if record.extended is None else nbytes + record.extended.nbytes


def _is_same(first: Diagnosis, second: Diagnosis) -> bool:
    return (
        not first.single
        and not second.single
        and first.absent == second.absent
        and len(first.rejections) == len(second.rejections)
        and all(_are_same(a, b) for a, b in zip(first.rejections, second.rejections, strict=True))
    )


def _are_same(first: Rejection, second: Rejection) -> bool:
    # Cached filters return the same rejection of all nodes until a node or its pods change.
    return first is second or (
        np.array_equal(first.rows, second.rows)
        and np.array_equal(first.verdicts, second.verdicts)
        and (first.meanings is second.meanings or first.status_counts() == second.status_counts())
    )
