"""The first decision in which two recordings differ.

Never replays: what is compared are the decisions as they were recorded. Uids do not count, since the same pod has
another one in each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from podium.objects.resource_types import ALL
from podium.recording import tape

_KIND_OF = {each.path: each.kind for each in ALL}


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision, and what the watches had shown last before it."""

    decided: tape.Decided
    event: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two recordings part.

    Attributes:
        attempt: the number of the attempt, from 1.
        one, other: the decisions; None if the recording has ended.
    """

    attempt: int
    one: RecordedDecision | None
    other: RecordedDecision | None


def first_difference(one: Iterable[tape.Entry], other: Iterable[tape.Entry]) -> Difference | None:
    """The first difference; None if the recordings hold the same decisions in the same order."""
    pairs = zip_longest(_decisions(one), _decisions(other))
    for attempt, (first, second) in enumerate(pairs, 1):
        if first is None or second is None or _content(first.decided) != _content(second.decided):
            return Difference(attempt, first, second)
    return None


def _content(decided: tape.Decided) -> tape.Decided:
    return decided._replace(uid="", victims=tuple(sorted(decided.victims)))


def _decisions(entries: Iterable[tape.Entry]) -> Iterator[RecordedDecision]:
    event = "the start"
    for entry in entries:
        if entry[0] == tape.PUT:
            event = f"{_KIND_OF.get(entry[1], entry[1])} {tape.item_of(entry).key} was added or has changed"
        elif entry[0] == tape.REMOVE:
            event = f"{_KIND_OF.get(entry[1], entry[1])} {entry[2]} was deleted"
        elif entry[0] == tape.DECIDED:
            yield RecordedDecision(tape.Decided(*entry[1:]), event)
