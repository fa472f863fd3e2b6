"""Notes down every attempt, and finds those that somebody asks about."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from podium.cluster import Rows, Snapshot
from podium.engine.flight_recorder.attempts import RESULTS, Details, RecordedAttempt
from podium.engine.flight_recorder.node_names import NodeNames
from podium.engine.flight_recorder.observer import AttemptObserver, Seconds
from podium.engine.flight_recorder.ring import Ring
from podium.engine.flight_recorder.segment import ATTEMPTS_MAX, FIXED_BYTES, SCHEDULED, SCORED_BYTES, Segment
from podium.engine.pod_group_cycle import MemberDecision
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
_encode_into: Final = msgspec.msgpack.Encoder().encode_into
_NUMBER_OF: Final = {each.value: number for number, each in enumerate(RESULTS)}


class FlightRecorder(AttemptObserver):
    """Keeps the last attempts within a number of bytes.

    Attempts that found a node and those that did not are kept apart, each within half of the memory: thousands of
    scheduled pods must not displace the only attempt at a pending one.

    Cost: one call for a decision, which encodes what it was, and one for its end. The scores are referred to.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._placed, self._rejected = Ring(memory_bytes // 2), Ring(memory_bytes // 2)
        self._sequence = 0
        self._open: dict[str, tuple[Ring, Segment, int]] = {}
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
        """Note down the decision. If the pod was placed, this calls at most two functions unless a node was added."""
        snapshot = cycle.snapshot
        if snapshot.order is not self._order and not snapshot.is_fork:
            self._learn_names(snapshot)
        diagnosis, meta = cycle.diagnosis, cycle.pod.metadata
        if decision.__class__ is Suggested:
            ring, scored, node_name = self._placed, cycle.scored, decision.node_name
            examined, feasible = decision.evaluated_nodes, decision.feasible_nodes
        else:
            ring, scored, node_name = self._rejected, None, ""
            examined, feasible = diagnosis.rejected_count, 0
        history: ScoreHistory | None = None
        score_bytes = history_bytes = rejection_bytes = 0
        if scored is not None:
            history, score_bytes = scored.history, SCORED_BYTES
            history_bytes = 0 if history is None else history.nbytes
            if scored.rows.base is None:
                score_bytes += scored.rows.nbytes
            if scored.computed or scored.extended is not None:
                score_bytes += _bytes_computed(scored)
        if diagnosis.rejections:
            rejection_bytes = _bytes_rejected(diagnosis)
        has_details = self._names.names and score_bytes + history_bytes + rejection_bytes <= ring.pending_bytes_max
        if not has_details:
            scored = history = None
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
        if has_details and (diagnosis.rejections or diagnosis.single or not node_name):
            known = -1 if node_name else self._number_of_same(cycle.pod, diagnosis)
            if known < 0:
                known = len(segment.diagnoses)
                segment.diagnoses.append(diagnosis)
            else:
                size -= rejection_bytes
            segment.diagnosis_of[position] = known
        self._sequence += 1
        _encode_into(
            (
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
                info.transitions.raw,
            ),
            segment.heads,
            -1,
        )
        segment.scored[position] = scored
        segment.score_bytes += score_bytes
        segment.count, segment.last = position + 1, self._sequence
        ring.pending_bytes += size
        self._open[meta.uid] = ring, segment, position

    def bound(self, pod: Pod, seconds: Seconds) -> None:
        """Note that the pod was bound."""
        uid = pod.metadata.uid
        if uid in self._open:
            _, segment, position = self._open[uid]
            del self._open[uid]
            segment.results[position], segment.total_s[position] = SCHEDULED, seconds

    def failed(self, pod: Pod, result: str, message: str, seconds: Seconds) -> None:
        """Note why the pod was not scheduled."""
        if pod.uid in self._open:
            ring, segment, position = self._open.pop(pod.uid)
            ring.end(segment, position, _NUMBER_OF[result], seconds, message[:_MESSAGE_MAX])

    def _number_of_same(self, pod: Pod, diagnosis: Diagnosis) -> int:
        """The number of a diagnosis that replicas share because they were rejected alike; -1 if there is none yet."""
        segment, spec = self._rejected.newest, pod.spec
        if not segment.count:
            self._last_rejected.clear()
        known = self._last_rejected.get(id(spec))
        if known is not None and _is_same(segment.diagnoses[known[1]], diagnosis):
            return known[1]
        self._last_rejected[id(spec)] = spec, len(segment.diagnoses)
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
        self._placed.use(self._names, snapshot.order.nbytes)
        self._rejected.use(self._names, 0)

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str = "", name: str = "", result: str = "") -> Iterator[RecordedAttempt]:
        """The recorded attempts at such pods; "" for any."""
        found = [ring.newest_first(namespace, name, result) for ring in (self._placed, self._rejected)]
        return heapq.merge(*found, key=lambda each: -each.sequence)

    def details(self, attempt: RecordedAttempt) -> Details | None:
        """What the attempt found out about nodes; None if that is no longer kept."""
        return (self._placed if attempt.node else self._rejected).details(attempt.sequence)


def _bytes_rejected(diagnosis: Diagnosis) -> int:
    return sum(each.rows.nbytes + each.verdicts.nbytes for each in diagnosis.rejections)


def _bytes_computed(scored: Scored) -> int:
    """What the scores take that the attempt has computed or been told."""
    nbytes = len(scored.computed) * (SCORED_BYTES + scored.rows.size)
    return nbytes if scored.extended is None else nbytes + scored.extended.nbytes


def _is_same(one: Diagnosis, other: Diagnosis) -> bool:
    return (
        not one.single
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
