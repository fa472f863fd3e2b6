"""What a recording holds: entries in the order in which the scheduling path met them, as bytes and back.

Owns the kinds of entries and their encoding. Never knows where the bytes lie. What it decodes has the form of entries,
whoever wrote the bytes.

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
| `FAILED` | uid, result, message | the pod of the last decision was not scheduled |
| `TIME` | step of `Times` | the event loop's time at the next step |
| `END` | | scheduling was stopped in an orderly way |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from podium.lib.error_text import error_text
from podium.objects import resource_types, unreadable
from podium.objects.api_errors import ApiError, OutcomeUnknown, TooManyRequests, may_have_happened
from podium.objects.objects_with_json import NodeWithJson, PodWithJson

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
"""A tuple when it is noted; a list when it is read."""


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


class AsValues(NamedTuple):
    """An object in an entry as the values that it is encoded to, and the name of its type."""

    kind: str
    values: Any


class Times:
    """Turns readings of a clock into steps and back, exactly: nanoseconds since the last one, or the reading itself."""

    def __init__(self) -> None:
        self._last_ns = 0
        self.last_s = 0.0

    def step(self, now_s: float) -> int | float:
        """The step from the last reading to this one."""
        now_ns = round(now_s * 1e9)
        last_ns, self._last_ns = self._last_ns, now_ns
        self.last_s = now_s
        return now_ns - last_ns if now_ns / 1e9 == now_s else now_s

    def take(self, step: Any) -> float:
        """The reading after this step."""
        if type(step) is int:
            self._last_ns = now_ns = self._last_ns + step
            self.last_s = now_s = now_ns / 1e9
            return now_s
        self.last_s, self._last_ns = step, round(step * 1e9)
        return self.last_s


_KINDS: Final[tuple[type[Any], ...]] = (
    *(each.type for each in resource_types.ALL),
    *unreadable.PARTIAL,
    PodWithJson,
    NodeWithJson,
)
_DECODERS: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in _KINDS}
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[list[Any]]).decode
_outline: Final = msgspec.msgpack.Decoder(
    Annotated[list[Annotated[list[msgspec.Raw], msgspec.Meta(max_length=10)]], msgspec.Meta(max_length=10_000)]
).decode
_LISTS: Final = frozenset((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
"""The first bytes of lists and mappings."""
_LISTS_BYTES_MAX: Final = 1 << 20
"""Of the lists within all entries of a block: a byte of them may take 70 bytes of memory."""
_OBJECT_BYTES_MAX: Final = 1 << 22
"""More than an API server accepts."""

_NUMBER: Final = ((int, int), (int, float))
_TEXT_OR_NONE: Final = (str, type(None))
_FORMS: Final[Mapping[Any, frozenset[tuple[type, ...]]]] = {
    kind: frozenset(forms)
    for kind, forms in {
        NOW: _NUMBER,
        MONOTONIC: _NUMBER,
        TIME: _NUMBER,
        READ: [(int, each) for each in (int, float, bool, type(None))],
        PUT: [(int, str, str, bytes)],
        REMOVE: [(int, str, str)],
        SIGNAL: [(int, int)],
        RESUME: [(int, int)],
        COMPOSE: [(int, int)],
        ANSWER: [
            *((int, int, int, each) for each in (bool, str, type(None), list)),
            (int, int, int, str, bytes),
        ],
        DECIDED: [(int, str, str, str, str, int, int, int, each, list) for each in _TEXT_OR_NONE],
        FAILED: [(int, str, str, str)],
        END: [(int,)],
    }.items()
}
"""The types that the parts of an entry of each kind may have."""
_NUMBERED: Final = frozenset(kind for kind, forms in _FORMS.items() if (int, int) in forms)
_OUTCOMES: Final = {
    VALUE: (bool, str, type(None)),
    OBJECT: (bytes,),
    REFUSED: (list,),
    CANCELLED: (type(None),),
    RAISED: (str,),
}
"""The types that the last part of an `ANSWER` may have, by its outcome."""
_FLOAT_MAX: Final = 1e15
_BITS_MAX: Final = 64


class EntryRandom(Random):
    """A random source whose draws are entries, of 64 bits at most: no entry holds larger integers."""

    def getrandbits(self, k: int) -> int:
        """An integer of that many random bits."""
        return self.bits(k) if k <= _BITS_MAX else self.getrandbits(k - _BITS_MAX) << _BITS_MAX | self.bits(_BITS_MAX)

    def bits(self, k: int) -> int:
        """As `getrandbits`, for one entry."""
        raise NotImplementedError


def encode(entries: Iterable[Entry]) -> bytes:
    """The entries as bytes."""
    return _encode([_with_bytes(entry) if entry[0] == PUT or entry[0] == ANSWER else entry for entry in entries])


def decode(content: bytes) -> list[Entry]:
    """The entries, with their objects.

    Raises:
        ValueError: this is not what `encode` returns.
    """
    try:
        if len(content) > _LISTS_BYTES_MAX:
            lists = (part for entry in _outline(content) for part in entry if memoryview(part)[0] in _LISTS)
            if sum(memoryview(part).nbytes for part in lists) > _LISTS_BYTES_MAX:
                raise ValueError("its lists are too long")
        entries: list[Entry] = _decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    for at, entry in enumerate(entries):
        try:
            # Most entries by far.
            if len(entry) == 2 and type(entry[1]) is int and type(entry[0]) is int and entry[0] in _NUMBERED:
                continue
            if tuple(map(type, entry)) not in _FORMS[entry[0]] or not _is_sound(entry):
                raise ValueError("its parts are not those of its kind")
            if entry[0] == PUT or (entry[0] == ANSWER and entry[2] == OBJECT):
                if len(entry[-1]) > _OBJECT_BYTES_MAX:
                    raise ValueError("its object is too large")
                entry[-2:] = (_DECODERS[entry[-2]].decode(entry[-1]),)
        except (IndexError, KeyError, TypeError, ValueError, RecursionError, msgspec.DecodeError) as error:
            raise ValueError(f"its entry {at} is not as podium writes it: {error_text(error)}") from None
    return entries


def _is_sound(entry: Entry) -> bool:
    """Whether an entry whose parts have the right types makes sense by itself."""
    kind, last = entry[0], entry[-1]
    if type(last) is float:
        return -_FLOAT_MAX < last < _FLOAT_MAX
    if kind == DECIDED:
        return all(isinstance(each, str) for each in last)
    if kind != ANSWER:
        return True
    if type(last) not in _OUTCOMES[entry[2]]:
        return False
    return entry[2] != REFUSED or error_of(last) is not None


def _with_bytes(entry: Entry) -> Entry:
    """The entry with its object, if it holds one, as the name of its type and its bytes."""
    *head, item = entry
    if entry[0] == ANSWER and entry[2] != OBJECT:
        return entry
    if isinstance(item, AsValues):
        return (*head, item.kind, _encode(item.values))
    return (*head, type(item).__name__, _encode(item))


def item_of(entry: Entry) -> Any:
    """The object in a `PUT`, or in an `ANSWER` with the outcome `OBJECT`."""
    return entry[-1]


def outcome_of(call: int, error: BaseException) -> Entry:
    """The `ANSWER` for a call that has raised."""
    if isinstance(error, ApiError):
        is_server_wide = isinstance(error, TooManyRequests) and error.is_server_wide
        fields = (type(error).__name__, error.message, error.code, error.reason, error.retry_after_s, is_server_wide)
        followed = error.__cause__ or error.__context__
        return (ANSWER, call, REFUSED, (*fields, True) if may_have_happened(followed) else fields)
    if isinstance(error, Exception):
        return (ANSWER, call, RAISED, f"{type(error).__name__}: {error}")
    return (ANSWER, call, CANCELLED, None)


def error_of(fields: list[Any]) -> ApiError:
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
