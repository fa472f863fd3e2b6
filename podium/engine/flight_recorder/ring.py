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
        pending_bytes: the estimated size of that segment, arrays included, rounded up.
        pending_bytes_max: the size beyond which it is sealed.
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
        """The number of attempts that are kept."""
        return self._sealed_count + self.newest.count

    @property
    def nbytes(self) -> int:
        """The size of all kept attempts."""
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
        """Let new attempts refer to these names, which may have grown, and to a new order of nodes."""
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
        """Record the end of an attempt, with its message."""
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
            expired = self._segments.popleft()
            self._heads_bytes -= expired.head_bytes
            self._sealed_count -= expired.count
            expired.drop()

    def _count_names(self) -> int:
        """Return the size of all names. Neighbouring segments share theirs, unless a row got another node between."""
        names = [segment.names for segment in self._with_details] + [self.newest.names]
        return sum([b.nbytes for a, b in zip([None, *names[:-1]], names, strict=True) if a is not b])

    # ------------------------------------------------------------ reading

    def newest_first(self, namespace: str, name: str, result: str) -> Iterator[RecordedAttempt]:
        """Yield the attempts at the pods with these values, the newest first; "" matches any."""
        for segment in self._from_newest():
            yield from segment.newest_first(namespace, name, result)

    def details(self, sequence: int) -> Details | None:
        """Return the details of that attempt; None if they are not kept."""
        up_to_it = [segment for segment in self._from_newest() if segment.last >= sequence]
        return up_to_it[-1].details(sequence) if up_to_it else None

    def _from_newest(self) -> Iterator[Segment]:
        yield self.newest
        yield from reversed(tuple(self._segments))
