"""The attempts of one kind in segments, of which the newest grows, and the oldest are dropped first.

Details of nodes are dropped long before the attempts themselves: a quarter of the memory is for the attempts alone.

Invariant: `nbytes` is the sum of what is kept, and at most `limit_bytes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from podium.engine.flight_recorder.attempts import Details, RecordedAttempt
from podium.engine.flight_recorder.node_names import NodeNames
from podium.engine.flight_recorder.segment import Segment

_PENDING_SHARE: Final = 4
_HEADS_SHARE: Final = 4


class Ring:
    """The last attempts of one kind.

    Attributes:
        newest: the segment that is not sealed yet.
        pending_bytes: what it takes, arrays included, by a generous count.
        pending_bytes_max: beyond this it is sealed.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.pending_bytes_max = limit_bytes // _PENDING_SHARE
        self.newest = Segment(NodeNames())
        self.pending_bytes = self._order_bytes = 0
        self._segments: deque[Segment] = deque()
        self._with_details: deque[Segment] = deque()
        self._heads_bytes = self._details_bytes = self._names_bytes = 0
        self._sealed_count = 0

    @property
    def attempts(self) -> int:
        """How many attempts are kept."""
        return self._sealed_count + self.newest.count

    @property
    def nbytes(self) -> int:
        """What is kept takes so many bytes."""
        return self._heads_bytes + self._details_bytes + self._names_bytes + self.pending_bytes

    def seal(self) -> None:
        """Begin the next segment, and drop what exceeds the limit."""
        segment = self.newest
        if not segment.count:
            return
        segment.seal()
        self.newest, self.pending_bytes = Segment(segment.names), 0
        self._refer_to_order()
        self._segments.append(segment)
        self._with_details.append(segment)
        self._sealed_count += segment.count
        self._heads_bytes += segment.head_bytes
        self._details_bytes += segment.detail_bytes
        self._prune()

    def use(self, names: NodeNames, order_bytes: int) -> None:
        """Have the attempts from now on refer to these names, or to what was added to them, and to a new order."""
        if names is not self.newest.names:
            self.seal()
            self.newest.names = names
        self._order_bytes = order_bytes
        self._refer_to_order()
        self._prune()

    def _refer_to_order(self) -> None:
        self.newest.refer_to(self._order_bytes)
        self.pending_bytes += self._order_bytes

    def end(self, segment: Segment, position: int, result: int, total_s: float, message: str) -> None:
        """Note the end of an attempt, whose message is known only now."""
        nbytes = segment.end(position, result, total_s, message)
        if segment is self.newest:
            self.pending_bytes += nbytes
        else:
            self._heads_bytes += nbytes
        if self.nbytes > self.limit_bytes:
            self._prune()

    def _prune(self) -> None:
        # Pending attempts come before the next call, so room is left for them.
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
            dropped.drop()

    def _count_names(self) -> int:
        """The bytes of all names. Neighbouring segments share theirs, unless a row has changed hands between them."""
        used = [each.names for each in self._with_details] + [self.newest.names]
        return sum([b.nbytes for a, b in zip([None, *used[:-1]], used, strict=True) if a is not b])

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str, name: str, result: str) -> Iterator[RecordedAttempt]:
        """The attempts at such pods; "" for any."""
        for segment in self._from_newest():
            yield from segment.newest_first(namespace, name, result)

    def details(self, sequence: int) -> Details | None:
        """The details of that attempt; None if they are not kept."""
        up_to_it = [each for each in self._from_newest() if each.last >= sequence]
        return up_to_it[-1].details(sequence) if up_to_it else None

    def _from_newest(self) -> Iterator[Segment]:
        yield self.newest
        yield from reversed(tuple(self._segments))
