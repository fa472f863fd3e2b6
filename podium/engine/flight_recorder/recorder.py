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
from podium.engine.flight_recorder.segment import ATTEMPTS_MAX, FIXED_BYTES, SCHEDULED, SCORED_BYTES, UID, Head, Segment
from podium.engine.group_decisions import MemberDecision
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.schedule import Suggested
from podium.framework.cycle.scored import NONE, Scored
from podium.framework.profile.rejection import Rejection
from podium.framework.profile.score_history import ScoreHistory
from podium.objects.core import Pod, PodSpec

MEMORY_BYTES_MIN: Final = 1 << 20
"""Less would not hold the names of the nodes of a large cluster."""
_OPEN_MAX: Final = 10_000
_COPY_BYTES_MAX: Final = 4096
"""The size of an attempt's own copy of rows up to which it is counted later, together with other attempts."""
_MESSAGE_MAX: Final = 4000
"""Longer messages are cut: a plugin's reason has no length limit."""
_NUMBER_OF: Final = {result.value: number for number, result in enumerate(RESULTS)}


class FlightRecorder(AttemptObserver):
    """Keeps the last attempts within a number of bytes.

    Attempts that found a node and those that did not are kept apart, each within half of the memory: thousands of
    scheduled pods must not displace the only attempt at a pending one.

    Cost: two appends for the decision of most placed pods, and one for its end. They are counted many at a time: an
    attempt's nodes have just filled the processor's cache. Scores are referred to, not copied.
    """

    def __init__(self, memory_bytes: int) -> None:
        # Halves, so that a storm of rejections cannot push out the placements, nor these the rejections.
        self._placed, self._rejected = Ring(memory_bytes // 2), Ring(memory_bytes // 2)
        self._sequence = 0
        self._open: dict[str, tuple[Ring, Segment, int]] = {}
        self._names = NodeNames()
        self._order: Rows | None = None
        self._last_rejected: dict[int, tuple[PodSpec, int]] = {}
        self._count_max = 0
        """Up to so many, attempts are appended to the segment of placed pods without being counted."""
        self._copied_bytes = 0
        """The size of the copied rows of these."""
        self._bound_s: dict[str, Seconds] = {}

    @property
    def attempts(self) -> int:
        """The number of attempts that are kept."""
        self.settle()
        return self._placed.attempts + self._rejected.attempts

    @property
    def newest_sequence(self) -> int:
        """The number of attempts that this process has decided, which is also the number of the last one."""
        return self._sequence

    @property
    def nbytes(self) -> int:
        """The size of all kept attempts."""
        self.settle()
        return self._placed.nbytes + self._rejected.nbytes

    # ------------------------------------------------------------ recording

    def on_decision(
        self, info: QueuedPodInfo, cycle: Cycle, decision: MemberDecision, started_s: float, seconds: Seconds
    ) -> None:
        """Record the decision. For most placed pods this calls hardly any function."""
        meta, scores, diagnosis, segment = cycle.pod.metadata, cycle.scored, cycle.diagnosis, self._placed.newest
        order, is_placed = cycle.snapshot.order, decision.__class__ is Suggested
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
            decision.node_name if is_placed else "",  # type: ignore[union-attr]
            decision.evaluated_nodes if is_placed else diagnosis.rejected_count,  # type: ignore[union-attr]
            decision.feasible_nodes if is_placed else 0,  # type: ignore[union-attr]
            order.size,
            (*info.transitions.raw,),
        )
        # As a rule no node was rejected and no score computed for this pod alone, so that little has to be counted.
        if (
            is_placed
            and scores is not None
            and scores.history in segment.histories
            and scores.computed is NONE
            and scores.extended is None
            and (scores.rows.base is not None or scores.rows.nbytes <= _COPY_BYTES_MAX)
            and order is self._order
            and not diagnosis.rejections
            and not diagnosis.single
            and len(segment.heads) < self._count_max
            and meta.uid not in self._bound_s
        ):
            segment.heads.append(head)
            segment.scored.append(scores)
            if scores.rows.base is None:
                self._copied_bytes += scores.rows.nbytes
        else:
            self.settle()
            if is_placed or not self._repeat(head, cycle):
                self._record(head, cycle, scores if is_placed else None, is_placed=is_placed)
                self._make_room()

    def on_bound(self, pod: Pod, seconds: Seconds) -> None:
        """Record that the pod was bound."""
        self._bound_s.setdefault(pod.metadata.uid, seconds)
        if len(self._bound_s) >= ATTEMPTS_MAX:
            self.settle()

    def on_failure(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """Record why the pod was not scheduled."""
        self.settle()
        if pod.uid in self._open:
            ring, segment, position = self._open.pop(pod.uid)
            ring.end(segment, position, _NUMBER_OF[result], seconds, message[:_MESSAGE_MAX])
            if ring is self._placed:
                self._make_room()

    def settle(self) -> None:
        """Count the attempts that were only appended, and record which pods were bound."""
        ring, segment, bound_s = self._placed, self._placed.newest, self._bound_s
        first = segment.count
        if first == len(segment.heads) and not bound_s:
            return
        segment.count = len(segment.heads)
        positions = {segment.heads[position][UID]: position for position in range(first, segment.count)}
        for uid, position in positions.items():
            if uid in bound_s:
                segment.results[position], segment.total_s[position] = SCHEDULED, bound_s[uid]
            else:
                self._open[uid] = ring, segment, position
        if first < segment.count:
            score_bytes, self._copied_bytes = SCORED_BYTES * (segment.count - first) + self._copied_bytes, 0
            segment.last = segment.heads[-1][0]
            segment.score_bytes += score_bytes
            ring.pending_bytes += FIXED_BYTES * (segment.count - first) + score_bytes
        for uid in bound_s.keys() & self._open.keys():
            _, its_segment, position = self._open.pop(uid)
            # An earlier attempt at a pod that was decided on again has no end.
            if uid not in positions:
                its_segment.results[position], its_segment.total_s[position] = SCHEDULED, bound_s[uid]
        bound_s.clear()

    def _make_room(self) -> None:
        """Find how many of the next attempts may be appended without a new segment."""
        ring, segment = self._placed, self._placed.newest
        room = (ring.pending_bytes_max - ring.pending_bytes) // (FIXED_BYTES + SCORED_BYTES + _COPY_BYTES_MAX)
        # Without names of nodes, attempts are recorded without their scores.
        self._count_max = min(ATTEMPTS_MAX, segment.count + room) if self._names.names else 0

    def _repeat(self, head: Head, cycle: Cycle) -> bool:
        """Record an attempt at a replica of a pod that was rejected for the same reasons; False if it is none."""
        ring, segment = self._rejected, self._rejected.newest
        # Such an attempt takes little, and nothing of the room for placed pods.
        if (
            not 0 < segment.count < ATTEMPTS_MAX
            or cycle.snapshot.order is not self._order
            or ring.pending_bytes + FIXED_BYTES > ring.pending_bytes_max
            or (number := self._number_of_same(cycle.pod, cycle.diagnosis)) < 0
        ):
            return False
        segment.diagnosis_of[segment.count] = number
        self._append(ring, head, None)
        ring.pending_bytes += FIXED_BYTES
        return True

    def _append(self, ring: Ring, head: Head, scores: Scored | None) -> None:
        segment = ring.newest
        self._open[head[UID]] = ring, segment, segment.count
        segment.heads.append(head)
        segment.scored.append(scores)
        segment.count, segment.last = segment.count + 1, head[0]

    def _record(self, head: Head, cycle: Cycle, scores: Scored | None, *, is_placed: bool) -> None:
        """Record and count an attempt of any kind."""
        snapshot, diagnosis = cycle.snapshot, cycle.diagnosis
        if snapshot.order is not self._order and not snapshot.is_fork:
            self._learn_names(snapshot)
        ring = self._placed if is_placed else self._rejected
        history: ScoreHistory | None = None
        score_bytes = history_bytes = rejection_bytes = 0
        if scores is not None:
            history, score_bytes = scores.history, SCORED_BYTES
            history_bytes = 0 if history is None else history.nbytes
            if scores.rows.base is None:
                score_bytes += scores.rows.nbytes
            if scores.computed or scores.extended is not None:
                score_bytes += _bytes_computed(scores)
        if diagnosis.rejections:
            rejection_bytes = _bytes_rejected(diagnosis)
        # One huge attempt must not push out all others; without its details it is still listed.
        has_details = self._names.names and score_bytes + history_bytes + rejection_bytes <= ring.pending_bytes_max
        if not has_details:
            scores = history = None
            score_bytes = history_bytes = rejection_bytes = 0
        segment, size = ring.newest, FIXED_BYTES + score_bytes + rejection_bytes
        added_bytes = 0 if history in segment.histories else history_bytes
        if segment.count == ATTEMPTS_MAX or ring.pending_bytes + size + added_bytes > ring.pending_bytes_max:
            self._seal(ring)
            segment, added_bytes = ring.newest, history_bytes
        if added_bytes:
            segment.histories.add(history)
            size += added_bytes
        is_explained = has_details and (diagnosis.rejections or diagnosis.single or not is_placed)
        if is_explained and self._keep_diagnosis(segment, cycle, is_rejected=not is_placed):
            size -= rejection_bytes
        self._append(ring, head, scores)
        segment.score_bytes += score_bytes
        ring.pending_bytes += size

    def _keep_diagnosis(self, segment: Segment, cycle: Cycle, *, is_rejected: bool) -> bool:
        """Keep why nodes were rejected; return whether a replica of the pod was rejected for the same reasons."""
        number = self._number_of_same(cycle.pod, cycle.diagnosis) if is_rejected else -1
        is_known = number >= 0
        if not is_known:
            number = len(segment.diagnoses)
            segment.diagnoses.append(cycle.diagnosis)
            if is_rejected:
                self._last_rejected[id(cycle.pod.spec)] = cycle.pod.spec, number
        segment.diagnosis_of[segment.count] = number
        return is_known

    def _number_of_same(self, pod: Pod, diagnosis: Diagnosis) -> int:
        """Return the number of an equal diagnosis of a replica; -1 if no replica has one yet."""
        # The entries hold numbers of this segment, and the spec, so that its id cannot be that of another.
        diagnoses = self._rejected.newest.diagnoses
        if not diagnoses:
            self._last_rejected.clear()
        entry = self._last_rejected.get(id(pod.spec))
        return entry[1] if entry is not None and _is_same(diagnoses[entry[1]], diagnosis) else -1

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
        self.settle()
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
        and (first.absent is second.absent or first.absent == second.absent)
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
