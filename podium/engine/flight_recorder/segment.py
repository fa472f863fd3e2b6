"""A number of attempts, as they are noted down and as they are kept: nothing is made of them until somebody reads.

Owns the form of an attempt: its head is encoded at once, so that none of its objects lives on, and its scores stay
where scoring has them, in the history that the attempts at one signature share. Only verdicts, which may be about all
nodes, are put into columns when the segment is sealed.
"""

from __future__ import annotations

from array import array
from collections import Counter
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
FIXED_BYTES: Final = 2048
"""What an attempt is counted as before its segment is sealed, beside its arrays."""
SCORED_BYTES: Final = 384
"""What the scores of one attempt, or of a plugin in it, are counted as, beside their arrays."""
_OBJECT_BYTES: Final = 10_240
"""A segment and what it consists of, beside its heads, messages and arrays."""
_SIGNATURE_BYTES: Final = 1024
"""The weights and constant scores that attempts at pods of one signature share."""
_STATUS_BYTES: Final = 512
"""A status with its verdict and its reasons, which many attempts may share."""
_NUMBER_OF: Final = {each.value: number for number, each in enumerate(RESULTS)}
_ORDERS_MAX: Final = 3
_UNKNOWN_S: Final = -1.0
_KINDS: Final = [
    (kind, int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)
]


class _Head(msgspec.Struct, array_like=True):
    """What is encoded of an attempt, in the order in which the recorder notes it."""

    sequence: int
    namespace: str
    name: str
    uid: str
    profile: str
    attempt: int
    started_s: float
    decision_s: float
    node: str
    examined: int
    feasible: int
    node_count: int
    story: list[tuple[float, str, str, str, str]]


_decode: Final = msgspec.msgpack.Decoder(list[_Head]).decode


class Segment:
    """Attempts of one kind in the order of their decisions. The recorder adds to it until it is sealed.

    Attributes:
        names: the names of nodes that the details need.
        count, last: the number of attempts, and the sequence of the last one.
        heads: what was encoded of each, one after the other.
        results, total_s, messages: how each has ended, by its position.
        scored, diagnosis_of: its scores, and the number of its diagnosis; -1 if nothing was rejected.
        histories: where scores of these attempts are; None if they have none.
        score_bytes: what the scores take; until the segment is sealed, without the histories.
        order_bytes, order_count: what the orders of nodes take that the scores may refer to, and how many there are.
    """

    def __init__(self, names: NodeNames) -> None:
        self.names = names
        self.count = self.last = self.score_bytes = self.order_bytes = self.order_count = 0
        self.heads = bytearray()
        self.results = bytearray(ATTEMPTS_MAX)
        self.total_s = array("d", [_UNKNOWN_S]) * ATTEMPTS_MAX
        self.messages: dict[int, str] = {}
        self.scored: list[Scored | None] = [None] * ATTEMPTS_MAX
        self.histories: set[ScoreHistory | None] = set()
        self.diagnosis_of = [-1] * ATTEMPTS_MAX
        self.diagnoses: list[Diagnosis] = []
        self._verdicts: _Verdicts | None = None
        self._texts: dict[str, str] = {}
        self._text_bytes = 0

    @property
    def head_bytes(self) -> int:
        """What the attempts take without their details."""
        return _OBJECT_BYTES + len(self.heads) + self._text_bytes

    @property
    def detail_bytes(self) -> int:
        """What the verdicts and scores take."""
        return self.score_bytes + (0 if self._verdicts is None else self._verdicts.nbytes)

    def seal(self) -> None:
        """Make the details smaller; no attempt follows."""
        self.heads = bytearray(self.heads)  # no larger than needed
        if self.order_count > _ORDERS_MAX:
            self._copy_rows()
        self._leave_large_histories()
        self.score_bytes += self.order_bytes
        if self.diagnoses:
            self._verdicts, self.diagnoses = _Verdicts(self.diagnoses), []

    def refer_to(self, order_bytes: int) -> None:
        """The scores of new attempts may refer to an order of nodes of this size."""
        self.order_bytes += order_bytes
        self.order_count += 1

    def _copy_rows(self) -> None:
        """Refer to no order: there were many, since nodes come and go."""
        self.order_bytes = 0
        for each in self.scored:
            if each is not None and each.rows.base is not None:
                each.rows = each.rows.astype(np.uint32)
                self.score_bytes += each.rows.nbytes

    def _leave_large_histories(self) -> None:
        """Refer to no history that takes more than the scores that these attempts have from it."""
        nbytes: Counter[ScoreHistory] = Counter()
        for each in self.scored:
            if each is not None and each.history is not None:
                nbytes[each.history] += each.rows.size * each.history.table.shape[1]
        for each in self.scored:
            if each is not None and each.history is not None and nbytes[each.history] < each.history.nbytes:
                each.leave_history()
        self.score_bytes += sum(_SIGNATURE_BYTES + min(own, history.nbytes) for history, own in nbytes.items())
        self.histories.clear()

    def drop_details(self) -> None:
        """Forget the verdicts and scores."""
        self.names, self.scored, self.diagnosis_of, self._verdicts = NodeNames(), [], [], None
        self.score_bytes = 0

    def drop(self) -> None:
        """Forget everything: an attempt whose end is awaited still refers to this."""
        self.count, self.heads, self.messages, self._texts = 0, bytearray(), {}, {}

    def end(self, position: int, result: int, total_s: float, message: str) -> int:
        """Note how an attempt has ended. Returns the bytes that this takes."""
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
        """The attempts at such pods; "" for any."""
        if any(text.encode(errors="replace") not in self.heads for text in (namespace, name)):
            return
        if result and _NUMBER_OF[result] not in self.results[: self.count]:
            return
        for position, head in reversed(list(enumerate(self._decoded()))):
            if (
                namespace in ("", head.namespace)
                and name in ("", head.name)
                and result in ("", RESULTS[self.results[position]])
            ):
                yield self._attempt(position, head)

    def details(self, sequence: int) -> Details | None:
        """The verdicts and scores of the attempt with that number; None if they are not kept here."""
        heads = self._decoded() if self.scored else []
        position = next((at for at, head in enumerate(heads) if head.sequence == sequence), None)
        return None if position is None else self._details(position)

    def _decoded(self) -> list[_Head]:
        # The head of a list of so many, in MessagePack.
        return _decode(b"\xdd" + self.count.to_bytes(4, "big") + self.heads)

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
            examined=head.examined,
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
        rejected = {names[row]: _told(status) for row, status in by_row.items()}
        totals, plugins = _scores(self.scored[position], names)
        return Details(rejected, None if absent is None else _told(absent), totals, plugins)


def _scores(scored: Scored | None, names: Sequence[str]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The total of each node that was compared, and the weighted scores behind it by plugin."""
    if scored is None:
        return {}, {}
    cached = scored.cached()
    found: dict[str, _Column] = {
        plugin: np.multiply(scores, weight, dtype=np.int64)
        for (plugin, weight), scores in zip(scored.weights.items(), () if cached is None else cached.T, strict=True)
    }
    for plugin, (weight, scores) in scored.computed.items():
        found[plugin] = np.multiply(scores, weight, dtype=np.int64)
    for plugin, score in scored.constant.items():
        found[plugin] = np.full(len(scored.rows), score)
    sums = np.sum([*found.values(), np.zeros(len(scored.rows), np.int64)], axis=0)
    totals = sums if scored.extended is None else scored.extended
    nodes = [names[row] for row in scored.rows.tolist()]
    return dict(zip(nodes, totals.tolist(), strict=True)), {plugin: each.tolist() for plugin, each in found.items()}


class _Verdicts:
    """Diagnoses, with the rejections of all of them in one array."""

    def __init__(self, diagnoses: Sequence[Diagnosis]) -> None:
        owned = [(number, part) for number, each in enumerate(diagnoses) for part in each.rejections]
        rejections = [part for _, part in owned]
        owners = np.array([number for number, _ in owned], np.intp)
        self._ends = np.cumsum(np.bincount(owners, minlength=len(diagnoses)))
        self._rejected = _Pieces([each.rows for each in rejections])
        self._verdicts = _Pieces([each.verdicts for each in rejections])
        self._meanings = [each.meanings for each in rejections]
        self._single = [each.single or None for each in diagnoses]
        self._absent = [each.absent if each.absent.reasons else None for each in diagnoses]
        statuses = sum(map(len, [*self._meanings, *[each for each in self._single if each]]))
        self.nbytes = (
            self._rejected.nbytes
            + self._verdicts.nbytes
            + self._ends.nbytes
            + 8 * (len(self._meanings) + len(self._single) + len(self._absent))
            + _STATUS_BYTES * (statuses + len(self._absent))
        )

    def of(self, number: int) -> tuple[dict[int, Status], Status | None]:
        """The status of each rejected row, and of all others if PreFilter rejected the pod there."""
        found: dict[int, Status] = {}
        for part in range(int(self._ends[number - 1]) if number else 0, int(self._ends[number])):
            found.update(Rejection(self._rejected.of(part), self._verdicts.of(part), self._meanings[part]).by_row())
        return found | (self._single[number] or {}), self._absent[number]


class _Pieces:
    """Arrays of different sizes, one after the other in one array of the smallest type."""

    def __init__(self, pieces: Sequence[_Column]) -> None:
        self._ends = np.cumsum(np.array([each.size for each in pieces], np.int64))
        self._values = _smallest(np.concatenate(pieces)) if pieces else np.zeros(0, np.uint8)
        self.nbytes = self._ends.nbytes + self._values.nbytes

    def of(self, position: int) -> NDArray[np.int64]:
        begin = int(self._ends[position - 1]) if position else 0
        return self._values[begin : int(self._ends[position])].astype(np.int64)


def _smallest(values: _Column) -> _Column:
    """The same integers in the smallest type that holds them all."""
    if not values.size:
        return values.astype(np.uint8)
    least, greatest = int(values.min()), int(values.max())
    for kind, lowest, highest in _KINDS:
        if lowest <= least and greatest <= highest:
            return values.astype(kind)
    return values


def _told(status: Status) -> tuple[str, str]:
    return status.plugin, status.message


def _text_bytes(text: str) -> int:
    """At most four bytes for a character, and what every text has beside them."""
    return 64 + (len(text) if text.isascii() else 4 * len(text))
