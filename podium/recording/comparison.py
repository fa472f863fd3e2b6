"""Finds the first decision in which two recordings differ.

Compares the recorded decisions, without a replay. Ignores uids: the same pod has another one in each cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from podium.objects.resource_types import ALL
from podium.recording.entries import DECIDED, PUT, REMOVE, Decision, Entry, item_of

_KIND_OF = {resource.path: resource.kind for resource in ALL}


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision, and the last watch event before it."""

    decision: Decision
    event: str


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two recordings.

    Attributes:
        attempt: the number of the attempt, from 1.
        decisions: of the first and the second recording; None where a recording ended.
    """

    attempt: int
    decisions: tuple[RecordedDecision | None, RecordedDecision | None]


def first_difference(first: Iterable[Entry], second: Iterable[Entry]) -> Difference | None:
    """Return the first difference; None if both recordings hold the same decisions in the same order."""
    pairs = zip_longest(_decisions(first), _decisions(second))
    for attempt, (one_side, other_side) in enumerate(pairs, 1):
        if one_side is None or other_side is None or _content(one_side.decision) != _content(other_side.decision):
            return Difference(attempt, (one_side, other_side))
    return None


def _content(decision: Decision) -> Decision:
    return decision._replace(uid="", victims=tuple(sorted(decision.victims)))


def _decisions(entries: Iterable[Entry]) -> Iterator[RecordedDecision]:
    event = "the start"
    for entry in entries:
        if entry[0] == PUT:
            event = f"{_KIND_OF.get(entry[1], entry[1])} {item_of(entry).key} was added or has changed"
        elif entry[0] == REMOVE:
            event = f"{_KIND_OF.get(entry[1], entry[1])} {entry[2]} was deleted"
        elif entry[0] == DECIDED:
            yield RecordedDecision(Decision(*entry[1:]), event)
