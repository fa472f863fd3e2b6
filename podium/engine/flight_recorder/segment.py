"""A segment of recorded attempts, which are decoded only on read.

Owns the form of an attempt: its head is encoded at once, so that none of its objects is kept alive. Its scores stay
where scoring keeps them, in the history that the attempts at one signature share. Only verdicts, which may concern all
nodes, are put into columns when the segment is sealed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.engine.flight_recorder.attempts import RESULTS, Details, RecordedAttempt
from podium.engine.flight_recorder.node_names import NodeNames
from podium.framework.contract.status import Status
from podium.framework.cycle.diagnosis import Diagnosis
from podium.framework.cycle.scored import Scored
from podium.framework.profile.rejection import Rejection
from podium.framework.profile.score_history import ScoreHistory
from podium.lib.transitions import Transition

_Column: TypeAlias = NDArray[Any]

BINDING, SCHEDULED, UNSCHEDULABLE, ERROR = range(4)
"""Positions in `RESULTS`."""
ATTEMPTS_MAX: Final = 128
Head: TypeAlias = tuple[int, str, str, str, str, int, float, float, str, int, int, int, tuple[object, ...]]
"""The head of an attempt that is not encoded yet: the fields of `_Head`."""
UID: Final = 3
"""The position of the pod's uid in a head."""
FIXED_BYTES: Final = 2048
"""The estimated size of an attempt before its segment is sealed, without its arrays."""
SCORED_BYTES: Final = 384
"""The estimated size of one attempt's scores, or of one plugin's scores in it, without their arrays."""
_OBJECT_BYTES: Final = 10_240
"""The estimated size of a segment without its heads, messages and arrays."""
_SIGNATURE_BYTES: Final = 1024
"""The estimated size of the weights and constant scores that attempts at pods of one signature share."""
_STATUS_BYTES: Final = 512
"""The estimated size of a status with its verdict and its reasons, which many attempts may share."""
_NUMBER_OF: Final = {result.value: number for number, result in enumerate(RESULTS)}
_ORDERS_MAX: Final = 3
_UNKNOWN_S: Final = -1.0
_KINDS: Final = [
    (kind, int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
]


class _Head(msgspec.Struct, array_like=True):
    """The head of an attempt, in the order in which the recorder hands it over."""

    sequence: int
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    started_s: float
    decision_s: float
    node: str
    examined_count: int
    feasible: int
    node_count: int
    story: list[tuple[float, str, str, str, str]]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[_Head]).decode


class Segment:
    """Attempts of one kind in the order of their decisions. The recorder adds to it until it is sealed.

    Attributes:
        names: the names of nodes that the details need.
        count, last: the number of attempts, and the sequence of the last one.
        heads: the heads of the attempts that are not encoded yet; empty once the segment is sealed.
        results, total_s, messages: the end of each attempt, by its position.
        scored, diagnosis_of: its scores, and the number of its diagnosis; -1 if nothing was rejected.
        histories: the score histories of these attempts, with None for attempts without a history.
        score_bytes: the size of the scores; until the segment is sealed, without the histories.
        order_bytes, order_count: the size and number of the node orders to which the scores may refer.
    """

    def __init__(self, names: NodeNames) -> None:
        self.names = names
        self.count = self.last = self.score_bytes = self.order_bytes = self.order_count = 0
        self.heads: list[Head] = []
        self._encoded_heads = b""
        # A byte for each attempt; a list would take eight, and a value that knows its name far more.
        self.results = bytearray(ATTEMPTS_MAX)
        self.total_s = array("d", [_UNKNOWN_S]) * ATTEMPTS_MAX
        self.messages: dict[int, str] = {}
        self.scored: list[Scored | None] = []
        self.histories: set[ScoreHistory | None] = set()
        self.diagnosis_of = [-1] * ATTEMPTS_MAX
        self.diagnoses: list[Diagnosis] = []
        self._verdicts: _Verdicts | None = None
        self._texts: dict[str, str] = {}
        self._text_bytes = 0

    @property
    def head_bytes(self) -> int:
        """The size of the attempts without their details."""
        return _OBJECT_BYTES + len(self._encoded_heads) + self._text_bytes

    @property
    def detail_bytes(self) -> int:
        """The size of the verdicts and scores."""
        return self.score_bytes + (0 if self._verdicts is None else self._verdicts.nbytes)

    def seal(self) -> None:
        """Encode the heads, and compress the details, once no attempt follows."""
        # Together, and not after each decision, whose nodes have just filled the processor's cache.
        self._encoded_heads, self.heads = _encode(self.heads), []
        # Rows are slices that keep their whole order of nodes alive. A few orders are cheaper than copies; many are
        # not.
        if self.order_count > _ORDERS_MAX:
            self._copy_rows()
        self._leave_large_histories()
        self.score_bytes += self.order_bytes
        if self.diagnoses:
            self._verdicts, self.diagnoses = _Verdicts(self.diagnoses), []

    def refer_to(self, order_bytes: int) -> None:
        """Count an order of nodes of this size, to which the scores of new attempts may refer."""
        self.order_bytes += order_bytes
        self.order_count += 1

    def _copy_rows(self) -> None:
        """Copy the rows, so that the scores refer to no order of nodes, of which there were many."""
        self.order_bytes = 0
        for record in self.scored:
            if record is not None and record.rows.base is not None:
                record.rows = record.rows.astype(np.uint32)
                self.score_bytes += record.rows.nbytes

    def _leave_large_histories(self) -> None:
        """Copy the scores out of histories that are larger than these attempts' scores in them."""
        excess_bytes = {history: history.nbytes for history in self.histories if history is not None}
        self.score_bytes += sum(_SIGNATURE_BYTES + nbytes for nbytes in excess_bytes.values())
        for record in self.scored:
            # Nearly always the first few attempts suffice.
            if not excess_bytes:
                break
            if record is not None and (history := record.history) in excess_bytes:
                excess_bytes[history] -= record.rows.size * history.row_bytes
                if excess_bytes[history] <= 0:
                    del excess_bytes[history]
        # A history belongs to all pods of one signature; a few attempts must not keep the scores of thousands.
        for record in self.scored if excess_bytes else ():
            if record is not None and record.history in excess_bytes:
                record.leave_history()
        self.score_bytes -= sum(excess_bytes.values())
        self.histories.clear()

    def drop_details(self) -> None:
        """Forget the verdicts and scores."""
        self.names, self.scored, self.diagnosis_of, self._verdicts = NodeNames(), [], [], None
        self.score_bytes = 0

    def drop(self) -> None:
        """Forget everything, because an attempt that has not ended may still refer to this segment."""
        self.count, self._encoded_heads, self.messages, self._texts = 0, b"", {}, {}

    def end(self, position: int, result: int, total_s: float, message: str) -> int:
        """Record the end of an attempt, and return the bytes that this takes."""
        if position >= self.count:
            return 0
        self.results[position], self.total_s[position] = result, total_s
        if not message:
            return 0
        nbytes = 0 if message in self._texts else _text_bytes(message)
        self.messages[position] = self._texts.setdefault(message, message)
        self._text_bytes += nbytes
        return nbytes

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str, name: str, result: str) -> Iterator[RecordedAttempt]:
        """Yield the attempts at the pods with these values, the newest first; "" matches any."""
        # The bytes are searched first, since decoding every head takes far longer. A name elsewhere only costs the
        # decoding.
        heads = self._encoded_heads or _encode(self.heads)
        if any(text.encode(errors="replace") not in heads for text in (namespace, name)):
            return
        if result and _NUMBER_OF[result] not in self.results[: self.count]:
            return
        for position, head in reversed(list(enumerate(_decode(heads)))):
            if (
                namespace in ("", head.namespace)
                and name in ("", head.name)
                and result in ("", RESULTS[self.results[position]])
            ):
                yield self._attempt(position, head)

    def details(self, sequence: int) -> Details | None:
        """Return the verdicts and scores of the attempt with that number; None if they are not kept here."""
        heads = _decode(self._encoded_heads or _encode(self.heads)) if self.scored else []
        position = next((index for index, head in enumerate(heads) if head.sequence == sequence), None)
        return None if position is None else self._details(position)

    def _attempt(self, position: int, head: _Head) -> RecordedAttempt:
        total_s = self.total_s[position]
        return RecordedAttempt(
            sequence=head.sequence,
            namespace=head.namespace,
            name=head.name,
            uid=head.uid,
            profile=head.profile,
            attempt=head.attempt,
            started_s=head.started_s,
            decision_s=head.decision_s,
            total_s=None if total_s == _UNKNOWN_S else total_s,
            result=RESULTS[self.results[position]],
            node=head.node,
            message=self.messages.get(position, ""),
            node_count=head.node_count,
            examined=head.examined_count,
            feasible=head.feasible,
            story=tuple(Transition(*line) for line in head.story),
        )

    def _details(self, position: int) -> Details:
        names, number = self.names.names, self.diagnosis_of[position]
        by_row: dict[int, Status] = {}
        absent: Status | None = None
        if number >= 0:
            verdicts = self._verdicts or _Verdicts(self.diagnoses)
            by_row, absent = verdicts.of(number)
        rejections = {names[row]: _plugin_and_message(status) for row, status in by_row.items()}
        totals, plugins = _scores(self.scored[position], names)
        return Details(rejections, None if absent is None else _plugin_and_message(absent), totals, plugins)


def _scores(record: Scored | None, names: Sequence[str]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the total score of each node that was compared, and the weighted scores by plugin."""
    if record is None:
        return {}, {}
    raw_scores = record.raw_scores()
    scores_by_plugin: dict[str, _Column] = {
        plugin: np.multiply(scores, weight, dtype=np.int64)
        for (plugin, weight), scores in zip(
            record.weights.items(), () if raw_scores is None else raw_scores.T, strict=True
        )
    }
    for plugin, (weight, scores) in record.computed.items():
        scores_by_plugin[plugin] = np.multiply(scores, weight, dtype=np.int64)
    for plugin, score in record.constant.items():
        scores_by_plugin[plugin] = np.full(len(record.rows), score)
    sums = np.sum([*scores_by_plugin.values(), np.zeros(len(record.rows), np.int64)], axis=0)
    totals = sums if record.extended is None else record.extended
    nodes = [names[row] for row in record.rows.tolist()]
    return dict(zip(nodes, totals.tolist(), strict=True)), {
        plugin: values.tolist() for plugin, values in scores_by_plugin.items()
    }


class _Verdicts:
    """Several diagnoses, with all their rejections in one array."""

    def __init__(self, diagnoses: Sequence[Diagnosis]) -> None:
        entries = [(number, part) for number, diagnosis in enumerate(diagnoses) for part in diagnosis.rejections]
        rejections = [part for _, part in entries]
        owners = np.array([number for number, _ in entries], np.intp)
        # Offsets in one array: an array object alone is larger than the rejections of most attempts.
        self._ends = np.cumsum(np.bincount(owners, minlength=len(diagnoses)))
        self._rejected = _Pieces([rejection.rows for rejection in rejections])
        self._verdicts = _Pieces([rejection.verdicts for rejection in rejections])
        self._meanings = [rejection.meanings for rejection in rejections]
        self._single = [diagnosis.single or None for diagnosis in diagnoses]
        self._absent = [diagnosis.absent if diagnosis.absent.reasons else None for diagnosis in diagnoses]
        statuses = sum(map(len, [*self._meanings, *[single for single in self._single if single]]))
        self.nbytes = (
            self._rejected.nbytes
            + self._verdicts.nbytes
            + self._ends.nbytes
            + 8 * (len(self._meanings) + len(self._single) + len(self._absent))
            + _STATUS_BYTES * (statuses + len(self._absent))
        )

    def of(self, number: int) -> tuple[dict[int, Status], Status | None]:
        """Return the status of each rejected row, and of all others if PreFilter rejected the pod there."""
        statuses: dict[int, Status] = {}
        for part in range(int(self._ends[number - 1]) if number else 0, int(self._ends[number])):
            statuses.update(Rejection(self._rejected.of(part), self._verdicts.of(part), self._meanings[part]).by_row())
        return statuses | (self._single[number] or {}), self._absent[number]


class _Pieces:
    """Arrays of different sizes, one after the other in one array of the smallest type."""

    def __init__(self, pieces: Sequence[_Column]) -> None:
        self._ends = np.cumsum(np.array([piece.size for piece in pieces], np.int64))
        self._values = _smallest(np.concatenate(pieces)) if pieces else np.zeros(0, np.uint8)
        self.nbytes = self._ends.nbytes + self._values.nbytes

    def of(self, position: int) -> NDArray[np.int64]:
        begin = int(self._ends[position - 1]) if position else 0
        return self._values[begin : int(self._ends[position])].astype(np.int64)


def _smallest(values: _Column) -> _Column:
    """Return the same integers in the smallest type that holds them all."""
    if not values.size:
        return values.astype(np.uint8)
    # Rows and verdicts are small numbers as a rule: on clusters below 65,536 nodes this saves three quarters.
    least, greatest = int(values.min()), int(values.max())
    for kind, lowest, highest in _KINDS:
        if lowest <= least and greatest <= highest:
            return values.astype(kind)
    return values


def _plugin_and_message(status: Status) -> tuple[str, str]:
    return status.plugin, status.message


def _text_bytes(text: str) -> int:
    """Return the greatest possible size of the text: up to four bytes for a character, and the object itself."""
    return 64 + (len(text) if text.isascii() else 4 * len(text))
