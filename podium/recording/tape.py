"""What a recording holds: entries in the order in which the scheduling path met them.

Owns the kinds of entries and what they mean. Never knows how they are written.

An entry is a tuple that begins with its kind:

| kind | then | means |
|---|---|---|
| `NOW`, `MONOTONIC` | step of `Times` | a clock was read |
| `READ` | value | something else outside was read: a random number, a length, a state |
| `PUT` | path of the resource, object | a watch has brought this state of an object |
| `REMOVE` | path of the resource, key | a watch has shown that the object is gone |
| `SIGNAL` | number of the signal | a callback was called from outside |
| `RESUME` | number of the task | a task of the scheduling path went on |
| `COMPOSE` | number of the call | the body of a write was made, right before it was sent |
| `ANSWER` | number of the call, outcome | the call has ended, and its task went on |
| `DECIDED` | see `Decided` | an attempt has reached its decision |
| `FAILED` | uid, result, message, what stands for it in conditions | the pod of the last decision was not scheduled |
| `TIME` | step of `Times` | the event loop's time at the next step |
| `END` | | scheduling was stopped in an orderly way |
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from podium.objects.api_errors import ApiError, OutcomeUnknown, TooManyRequests, may_have_happened

NOW, MONOTONIC, READ, PUT, REMOVE, SIGNAL, RESUME, COMPOSE, ANSWER, DECIDED, FAILED, TIME, END = range(13)
NAMES: Final = (
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
"""What the kinds are, for messages."""

VALUE, OBJECT, REFUSED, CANCELLED, RAISED = range(5)
"""The outcomes of a call."""

Entry: TypeAlias = Any
"""A tuple."""


class Decided(NamedTuple):
    """A decision as it is compared and counted.

    Attributes:
        node: the suggested node; "" if there is none.
        score: the total score of that node; 0 if nodes were not compared.
        nominated: the node that preemption is to make room on, if there is one.
        victims: the keys of the pods to be preempted there.
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
    """Turns readings of a clock into steps and back, exactly: nanoseconds since the last one, or the reading itself."""

    def __init__(self) -> None:
        self._last_ns = 0
        self.last_s = 0.0

    def steps(self, readings_s: Sequence[float]) -> list[int | float]:
        """The steps from the last reading to each of the next ones."""
        if not readings_s:
            return []
        now_s = np.array(readings_s, np.float64)
        now_ns = np.rint(now_s * 1e9).astype(np.int64)
        found: list[int | float] = np.diff(now_ns, prepend=self._last_ns).tolist()
        for at in np.flatnonzero(now_ns / 1e9 != now_s).tolist():
            found[at] = readings_s[at]
        self._last_ns, self.last_s = int(now_ns[-1]), readings_s[-1]
        return found

    def take(self, step: Any) -> float:
        """The reading after this step."""
        if type(step) is int:
            self._last_ns = now_ns = self._last_ns + step
            self.last_s = now_s = now_ns / 1e9
            return now_s
        self.last_s, self._last_ns = step, round(step * 1e9)
        return self.last_s


_BITS_MAX: Final = 64


class EntryRandom(Random):
    """A random source whose draws are entries, of 64 bits at most: no entry holds larger integers."""

    def getrandbits(self, k: int) -> int:
        """An integer of that many random bits."""
        return self.bits(k) if k <= _BITS_MAX else self.getrandbits(k - _BITS_MAX) << _BITS_MAX | self.bits(_BITS_MAX)

    def bits(self, k: int) -> int:
        """As `getrandbits`, for one entry."""
        raise NotImplementedError


def item_of(entry: Entry) -> Any:
    """The object in a `PUT`, or in an `ANSWER` with the outcome `OBJECT`."""
    return entry[-1]


def outcome_of(error: BaseException) -> tuple[int, Any]:
    """The outcome of a call that has raised, and what an `ANSWER` says of it."""
    if isinstance(error, ApiError):
        is_server_wide = isinstance(error, TooManyRequests) and error.is_server_wide
        fields = (type(error).__name__, error.message, error.code, error.reason, error.retry_after_s, is_server_wide)
        followed = error.__cause__ or error.__context__
        return REFUSED, (*fields, True) if may_have_happened(followed) else fields
    if isinstance(error, Exception):
        return RAISED, f"{type(error).__name__}: {error}"
    return CANCELLED, None


def raised(text: str) -> Exception:
    """The error in the place of one that was none of the API's."""
    return RuntimeError(text)


def error_of(fields: Sequence[Any]) -> ApiError:
    """The error that a call was answered with."""
    name, message, code, reason, retry_after_s, is_server_wide, *has_followed = fields
    kinds = {each.__name__: each for each in _subclasses(ApiError)}
    error = kinds[name](message, code=code, reason=reason, retry_after_s=retry_after_s)
    if isinstance(error, TooManyRequests):
        error.is_server_wide = is_server_wide
    if has_followed:
        error.__context__ = OutcomeUnknown("recorded")
    return error


def _subclasses(kind: type[ApiError]) -> list[type[ApiError]]:
    return [kind, *(one for each in kind.__subclasses__() for one in _subclasses(each))]
