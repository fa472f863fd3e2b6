"""The entries of a recording, in the order in which the scheduling path met them.

Owns the kinds of entries and their meaning. Never knows how they are written.

An entry is a tuple that begins with its kind:

| kind | then | means |
|---|---|---|
| `NOW`, `MONOTONIC` | step of `Times` | a clock was read |
| `READ` | value | another outside value was read: a random number, a length, a state |
| `PUT` | path of the resource, object | a watch delivered this state of an object |
| `REMOVE` | path of the resource, key | a watch reported that the object is deleted |
| `SIGNAL` | number of the signal | a callback was called from outside |
| `RESUME` | number of the task | a task of the scheduling path took its next step |
| `COMPOSE` | number of the call | the body of a write was composed, right before it was sent |
| `ANSWER` | number of the call, outcome | the call ended, and its task took its next step |
| `DECIDED` | see `Decision` | an attempt reached its decision |
| `FAILED` | uid, result, message, its mark in conditions | the pod of the last decision was not scheduled |
| `TIME` | step of `Times` | the event loop's time at the next step |
| `END` | | scheduling was stopped in an orderly way |
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from podium.objects.api_errors import ApiError, OutcomeUnknown, TooManyRequests, may_have_happened

NOW, MONOTONIC, READ, PUT, REMOVE, SIGNAL, RESUME, COMPOSE, ANSWER, DECIDED, FAILED, TIME, END = range(13)
KIND_NAMES: Final = (
    "a reading of the wall clock",
    "a reading of the clock",
    "a reading",
    "a watch event",
    "a watch event",
    "a signal",
    "a step of a task",
    "a write being sent",
    "an answer",
    "a decision",
    "a failed attempt",
    "a time",
    "the end",
)
"""The kinds in words, for messages."""

VALUE, OBJECT, REFUSED, CANCELLED, RAISED = range(5)
"""The outcomes of a call."""

Entry: TypeAlias = Any
"""A tuple."""


class Decision(NamedTuple):
    """A decision as replays compare it and digests count it.

    Attributes:
        node: the suggested node, or "".
        score: the total score of that node; 0 if no nodes were scored.
        nominated: the node on which preemption makes room, if any.
        victims: the keys of the pods to preempt there.
    """

    uid: str
    pod: str
    kind: str
    node: str
    evaluated: int
    feasible: int
    score: int
    nominated: str | None
    victims: tuple[str, ...]


class Times:
    """Converts readings of a clock to steps and back without loss.

    A step is the nanoseconds since the last reading, or the reading itself where nanoseconds would round it.
    """

    def __init__(self) -> None:
        self._last_ns = 0
        self.last_s = 0.0

    def steps(self, readings_s: Sequence[float]) -> list[int | float]:
        """Return the step to each of the next readings."""
        if not readings_s:
            return []
        now_s = np.array(readings_s, np.float64)
        now_ns = np.rint(now_s * 1e9).astype(np.int64)
        steps_ns = now_ns.copy()
        # `np.diff` would take several times as long for a few readings.
        steps_ns[0] -= self._last_ns
        steps_ns[1:] -= now_ns[:-1]
        steps: list[int | float] = steps_ns.tolist()
        for index in np.flatnonzero(now_ns / 1e9 != now_s).tolist():
            steps[index] = readings_s[index]
        self._last_ns, self.last_s = int(now_ns[-1]), readings_s[-1]
        return steps

    def take(self, step: Any) -> float:
        """Return the reading after this step."""
        if type(step) is int:
            self._last_ns = now_ns = self._last_ns + step
            self.last_s = now_s = now_ns / 1e9
            return now_s
        self.last_s, self._last_ns = step, round(step * 1e9)
        return self.last_s


_BITS_MAX: Final = 64


class EntryRandom(Random):
    """A random source whose draws are entries of at most 64 bits, the largest integer that an entry can hold."""

    def getrandbits(self, k: int) -> int:
        """Return an integer of that many random bits."""
        return self.bits(k) if k <= _BITS_MAX else self.getrandbits(k - _BITS_MAX) << _BITS_MAX | self.bits(_BITS_MAX)

    def bits(self, k: int) -> int:
        """Return an integer of at most 64 random bits, which is one entry."""
        raise NotImplementedError


def item_of(entry: Entry) -> Any:
    """Return the object in a `PUT`, or in an `ANSWER` with the outcome `OBJECT`."""
    return entry[-1]


def outcome_of(error: BaseException) -> tuple[int, Any]:
    """Return the outcome of a call that raised, and the value of its `ANSWER`."""
    if isinstance(error, ApiError):
        is_server_wide = isinstance(error, TooManyRequests) and error.is_server_wide
        fields = (type(error).__name__, error.message, error.code, error.reason, error.retry_after_s, is_server_wide)
        earlier_error = error.__cause__ or error.__context__
        return REFUSED, (*fields, True) if may_have_happened(earlier_error) else fields
    if isinstance(error, Exception):
        return RAISED, f"{type(error).__name__}: {error}"
    return CANCELLED, None


def unexpected_error(text: str) -> Exception:
    """Return an error that stands for one that did not come from the API."""
    return RuntimeError(text)


def error_of(fields: Sequence[Any]) -> ApiError:
    """Return the error that a call was answered with."""
    name, message, code, reason, retry_after_s, is_server_wide, *marks = fields
    kinds = {kind.__name__: kind for kind in _subclasses(ApiError)}
    error = kinds[name](message, code=code, reason=reason, retry_after_s=retry_after_s)
    if isinstance(error, TooManyRequests):
        error.is_server_wide = is_server_wide
    if marks:
        error.__context__ = OutcomeUnknown("recorded")
    return error


def _subclasses(kind: type[ApiError]) -> list[type[ApiError]]:
    return [kind, *chain.from_iterable(map(_subclasses, kind.__subclasses__()))]
