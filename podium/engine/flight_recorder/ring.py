"""The attempts of one kind: the newest as they were noted down, the others in segments, the oldest dropped first.

Details of nodes are dropped long before the attempts themselves: a quarter of the memory is for the attempts alone.

Invariant: `nbytes` is the sum of what is kept, and at most `limit_bytes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from podium.engine.flight_recorder.attempts import Details, RecordedAttempt
from podium.engine.flight_recorder.entry import BINDING, Entry, NodeNames
from podium.engine.flight_recorder.segment import Segment
from podium.framework.cycle.diagnosis import Diagnosis

PENDING_MAX: Final = 128
_PENDING_SHARE: Final = 4
_HEADS_SHARE: Final = 4


class Ring:
    """The last attempts of one kind.

    Attributes:
        count: the number of entries that are not sealed yet; `entries` has them, and nothing of use behind them.
        diagnosis_count: the same for `diagnoses`.
        names: what the pending entries refer to.
        pending_bytes: what these take, arrays included.
        pending_bytes_max: beyond this they are sealed.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.pending_bytes_max = limit_bytes // _PENDING_SHARE
        self.names = NodeNames()
        self.pending_bytes = self.count = self.diagnosis_count = 0
        self.entries: list[Entry | None] = [None] * PENDING_MAX
        self.diagnoses: list[Diagnosis | None] = [None] * PENDING_MAX
        self._segments: deque[Segment] = deque()
        self._with_details: deque[Segment] = deque()
        self._heads_bytes = self._details_bytes = self._names_bytes = 0
        self._sealed_count = 0

    @property
    def attempts(self) -> int:
        """How many attempts are kept."""
        return self._sealed_count + self.count

    @property
    def nbytes(self) -> int:
        """What is kept takes so many bytes."""
        return self._heads_bytes + self._details_bytes + self._names_bytes + self.pending_bytes

    def seal(self) -> None:
        """Turn the pending entries into a segment, and drop what exceeds the limit."""
        if not self.count:
            return
        segment = self._segment()
        for position, entry in zip(range(self.count), self._pending(), strict=True):
            entry.scored = None
            if entry.result == BINDING:
                entry.segment, entry.position = segment, position
        self.entries = [None] * PENDING_MAX
        self.diagnoses = [None] * PENDING_MAX
        self.pending_bytes = self.count = self.diagnosis_count = 0
        self._segments.append(segment)
        self._with_details.append(segment)
        self._sealed_count += segment.count
        self._heads_bytes += segment.head_bytes
        self._details_bytes += segment.detail_bytes
        self._prune()

    def use(self, names: NodeNames) -> None:
        """Have the entries from now on refer to these names, or to what was added to them."""
        self.names = names
        self._prune()

    def end(self, entry: Entry) -> None:
        """Note the end of an attempt, whose message is known only now."""
        segment = entry.segment
        if segment is None:
            self.pending_bytes += 4 * len(entry.message)
        else:
            before = segment.head_bytes
            segment.end(entry.position, entry.result, entry.total_s, entry.message)
            self._heads_bytes += segment.head_bytes - before
        if self.nbytes > self.limit_bytes:
            self._prune()

    def _prune(self) -> None:
        # Pending entries come before the next call, so room is left for them.
        limit = self.limit_bytes - max(self.pending_bytes, self.pending_bytes_max)
        details_limit = limit - self.limit_bytes // _HEADS_SHARE
        self._names_bytes = self._count_names()
        while self._with_details and self._details_bytes + self._names_bytes > details_limit:
            oldest = self._with_details.popleft()
            self._details_bytes -= oldest.detail_bytes
            oldest.drop_details()
            self._names_bytes = self._count_names()
        while self._segments and self._heads_bytes + self._details_bytes + self._names_bytes > limit:
            dropped = self._segments.popleft()
            self._heads_bytes -= dropped.head_bytes
            self._sealed_count -= dropped.count

    def _count_names(self) -> int:
        """The bytes of all names. Neighbouring segments share theirs, unless a row has changed hands between them."""
        used = [each.names for each in self._with_details] + [self.names]
        return sum([b.nbytes for a, b in zip([None, *used[:-1]], used, strict=True) if a is not b])

    def _pending(self) -> list[Entry]:
        return [each for each in self.entries[: self.count] if each is not None]

    def _segment(self) -> Segment:
        return Segment(self._pending(), [each for each in self.diagnoses if each is not None])

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str, name: str, result: str) -> Iterator[RecordedAttempt]:
        """The attempts at such pods; "" for any."""
        for segment in self._from_newest():
            for position in segment.newest_first(namespace, name, result):
                yield segment.attempt(position)

    def details(self, sequence: int) -> Details | None:
        """The details of that attempt; None if they are not kept."""
        for segment in self._from_newest():
            if (position := segment.position_of(sequence)) is not None:
                return segment.details(position)
        return None

    def _from_newest(self) -> Iterator[Segment]:
        if self.count:
            yield self._segment()
        yield from reversed(tuple(self._segments))
