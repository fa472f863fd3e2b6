"""Entries in columns: as they are noted, and as the content of a block and back.

Owns the form of that content: the kinds of the entries in order, for each kind a column with their values, and the
specs that pods share. So noting an entry costs two appends, and a writer encodes a column at a time. Never knows where
the bytes lie. What is read has the form of entries, whoever wrote the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

import msgspec
import numpy as np
from msgspec.structs import astuple

from podium.lib.error_text import cut, error_text
from podium.objects import resource_types, unreadable
from podium.objects.core import Pod, PodSpec, PodStatus
from podium.objects.meta import ObjectMeta
from podium.objects.objects_with_json import NodeWithJson, PodWithJson
from podium.objects.resource_types import PODS
from podium.recording import tape
from podium.recording.hashed_names import NameHasher
from podium.recording.segments import BLOCK_BYTES_MAX
from podium.recording.withheld import Withholder

T = TypeVar("T")
Columns: TypeAlias = list[list[Any]]
"""The values of the entries of each kind, by the number of the kind."""

_POD: Final = len(tape.NAMES)
"""A `PUT` of a pod, by far the most frequent one."""
_ONE_POD: Final = bytes([_POD])
_SPECS: Final = _POD + 1
"""The column of the specs that the pods of a block have."""
_OWN: Final = 4
"""So many fields of an `ObjectMeta`, the first ones, differ between replicas: name, namespace, uid and version."""
_META: Final = ObjectMeta.__struct_fields__
_STATUS: Final = PodStatus.__struct_fields__
_ENTRIES_MAX: Final = 10_000


class LeftOut(msgspec.Struct, frozen=True):
    """Stands in the place of an object that is too large, or cannot be encoded."""

    kind: str
    key: str
    why: str

    def __str__(self) -> str:
        """The object, and why it is not there."""
        return f"{self.kind} {self.key}: {self.why}"


LeaveOut: TypeAlias = Callable[[LeftOut], None]
"""Is told of an object that is left out."""


def _ignore(_: LeftOut) -> None:
    """Nobody wants to know."""


def _tuple_of(*types: Any) -> Any:
    return tuple[types]  # type: ignore[valid-type]


def _types_of(kind: Any) -> list[Any]:
    """The types of the fields of an object, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return [hints[name] for name in kind.__struct_fields__]


_Real: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
_Parts: TypeAlias = Annotated[list[int | _Real | bool | str | None], msgspec.Meta(max_length=10)]
_VALUES: Final[Mapping[int, Any]] = {
    tape.NOW: int | _Real,
    tape.MONOTONIC: int | _Real,
    tape.READ: int | _Real | bool | None,
    tape.PUT: tuple[str, str, bytes],
    tape.REMOVE: tuple[str, str],
    tape.SIGNAL: int,
    tape.RESUME: int,
    tape.COMPOSE: int,
    tape.ANSWER: tuple[int, int, bool | str | _Parts | None, bytes],
    tape.DECIDED: tape.Decided,
    tape.FAILED: Annotated[list[str], msgspec.Meta(min_length=3, max_length=4)],
    tape.TIME: int | _Real,
    tape.END: None,
    _POD: _tuple_of(
        Annotated[int, msgspec.Meta(ge=0)],
        *repeat(str, 1 + _OWN),
        _tuple_of(*_types_of(ObjectMeta)[_OWN:]) | None,
        _tuple_of(*_types_of(PodStatus)) | None,
    ),
    _SPECS: PodSpec,
}
"""The types of values as they are written: an object is the name of its type and its bytes."""
_OBJECT_BYTES_MAX: Final = 1 << 22
"""More than an API server accepts."""
_BYTES_MAX: Final = {
    tape.ANSWER: _OBJECT_BYTES_MAX + (1 << 20),
    tape.DECIDED: 1 << 20,
    _POD: _OBJECT_BYTES_MAX,
    _SPECS: _OBJECT_BYTES_MAX,
}
"""Of the columns whose values have lists in them: a byte of these may take 70 bytes of memory."""
_UNENCODABLE: Final = (OverflowError, TypeError, ValueError, RecursionError)
"""What keeps an object from being encoded, such as a number of 100 digits."""
_OUTCOMES: Final = {
    tape.VALUE: (bool, str, type(None)),
    tape.OBJECT: (str,),
    tape.REFUSED: (list,),
    tape.CANCELLED: (type(None),),
    tape.RAISED: (str,),
}
"""The types that an `ANSWER` may have, by its outcome."""
_TYPES: Final[Sequence[type[Any]]] = (
    *(each.type for each in resource_types.ALL),
    *unreadable.PARTIAL,
    PodWithJson,
    NodeWithJson,
    LeftOut,
)
_OBJECTS: Final = {each.__name__: msgspec.msgpack.Decoder(each) for each in _TYPES}
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_tuple_of(bytes, *repeat(msgspec.Raw, len(_VALUES)))).decode
_DECODERS: Final[Sequence[msgspec.msgpack.Decoder[list[Any]]]] = [
    msgspec.msgpack.Decoder(Annotated[list[_VALUES[kind]], msgspec.Meta(max_length=_ENTRIES_MAX)])  # type: ignore[valid-type]
    for kind in range(len(_VALUES))
]


# ---------------------------------------------------------------- writing


class Noted:
    """Entries that wait to be written. One thread notes them, and another one takes them.

    Invariant: a value is there before its kind is.
    """

    def __init__(self) -> None:
        self._kinds = bytearray()
        self._columns: Columns = [[] for _ in _VALUES]

    def __len__(self) -> int:
        """How many entries wait."""
        return len(self._kinds)

    def note(self, kind: int, value: Any) -> None:
        """Note an entry."""
        self._columns[kind].append(value)
        self._kinds.append(kind)

    def noting(self, kind: int, read: Callable[[], T]) -> Callable[[], T]:
        """The function, with its results noted."""
        add, mark = self._columns[kind].append, self._kinds.append

        def noted() -> T:
            value = read()
            add(value)
            mark(kind)
            return value

        return noted

    def put(self, path: str, item: Any) -> None:
        """Note a `PUT`."""
        if type(item) is Pod:
            self.note(_POD, item)
        else:
            self.note(tape.PUT, (path, item))

    def take(self, count_max: int) -> tuple[bytes, Columns]:
        """The oldest entries, up to an `END`, which wait no more: their kinds, and their values."""
        kinds = bytes(self._kinds[:count_max])
        kinds = kinds[: kinds.find(tape.END) + 1 or count_max]
        del self._kinds[: len(kinds)]
        taken = []
        for column, count in zip(self._columns, _counts(kinds), strict=True):
            taken.append(column[:count])
            del column[:count]
        return kinds, taken


def _counts(kinds: bytes) -> list[int]:
    """How many entries there are of each kind."""
    found: list[int] = np.bincount(np.frombuffer(kinds, np.uint8), minlength=len(_VALUES)).tolist()
    return found


class ColumnWriter:
    """Writes the entries of one recording, in order, without what may hold secrets.

    Args:
        hasher: makes names unreadable.
        leave_out: is told of objects that are left out, since no reader would take them.
    """

    def __init__(self, hasher: NameHasher | None = None, leave_out: LeaveOut = _ignore) -> None:
        self._hasher = hasher
        self._leave_out = leave_out
        self._withholder = Withholder()
        self._times = {kind: tape.Times() for kind in (tape.NOW, tape.MONOTONIC, tape.TIME)}

    def contents(self, kinds: bytes, noted: Columns) -> list[bytes]:
        """The entries as the content of a block, or of several where a reader would refuse it for its size.

        Raises:
            ValueError: a reader would refuse an entry that cannot be left out.
        """
        columns = list(noted)
        for kind, times in self._times.items():
            columns[kind] = times.steps(noted[kind])
        columns[tape.PUT] = [self._put(path, item) for path, item in noted[tape.PUT]]
        # Before what follows from them: the texts of errors are looked for in it.
        columns[tape.ANSWER] = [self._answer(*each) for each in noted[tape.ANSWER]]
        columns[tape.FAILED] = [self._failed(each) for each in noted[tape.FAILED]]
        hasher = self._hasher
        if hasher is not None:
            columns[tape.REMOVE] = [(path, hasher.text(key)) for path, key in noted[tape.REMOVE]]
            columns[tape.DECIDED] = [hasher.decided(each) for each in noted[tape.DECIDED]]
        return self._contents(kinds, columns)

    def _contents(self, kinds: bytes, columns: Columns) -> list[bytes]:
        try:
            content, problem = self._content(kinds, columns)
        except _UNENCODABLE as error:
            content, problem = b"", error_text(error)
        if not problem:
            return [content]
        if len(kinds) == 1:
            return [self._without_pod(kinds[0], columns[_POD], problem)]
        middle = len(kinds) // 2
        parts = zip(columns, _counts(kinds[:middle]), strict=True)
        first, second = zip(*((column[:count], column[count:]) for column, count in parts), strict=True)
        return self._contents(kinds[:middle], list(first)) + self._contents(kinds[middle:], list(second))

    def _content(self, kinds: bytes, columns: Columns) -> tuple[bytes, str]:
        """The content of one block, and why a reader would refuse it."""
        encoded = [*map(_encode, columns[:_POD]), *self._pods(columns[_POD])]
        content = _encode([kinds, *map(msgspec.Raw, encoded)])
        too_large = next((kind for kind, bytes_max in _BYTES_MAX.items() if len(encoded[kind]) > bytes_max), None)
        if too_large is not None:
            return content, _too_large(len(encoded[too_large]), _BYTES_MAX[too_large])
        return content, _too_large(len(content), BLOCK_BYTES_MAX) if len(content) > BLOCK_BYTES_MAX else ""

    def _without_pod(self, kind: int, pods: Sequence[Pod], problem: str) -> bytes:
        """The content of a block for the one entry that no reader would take."""
        if kind != _POD:
            raise ValueError(f"{_name(kind)}: {problem}")
        columns: Columns = [[] for _ in range(_POD)]
        columns[tape.PUT] = [self._instead(PODS.path, pods[0], problem)]
        return _encode([bytes([tape.PUT]), *columns, *map(msgspec.Raw, self._pods(()))])

    def _put(self, path: str, item: Any) -> tuple[str, str, bytes]:
        try:
            content = self._object(item)
        except _UNENCODABLE as error:
            return self._instead(path, item, error_text(error))
        if len(content) > _OBJECT_BYTES_MAX:
            return self._instead(path, item, _too_large(len(content), _OBJECT_BYTES_MAX))
        return path, type(item).__name__, content

    def _instead(self, path: str, item: Any, problem: str) -> tuple[str, str, bytes]:
        """A `PUT` that says that the object is left out."""
        key = item.key if self._hasher is None else self._hasher.text(item.key)
        left_out = LeftOut(type(item).__name__, cut(key).encode(errors="replace").decode(), problem)
        self._leave_out(left_out)
        return path, LeftOut.__name__, _encode(left_out)

    def _pods(self, pods: Sequence[Pod]) -> tuple[bytes, bytes]:
        """The columns of the pods, and of the specs that they share.

        What a pod has in common with the last one, of those with or without a node as it is itself, is None there.
        """
        hasher = self._hasher
        values: Callable[[Any], Sequence[Any]] = astuple if hasher is None else hasher.values
        pods = list(map(self._withholder.item, pods))
        specs = {id(pod.spec): pod.spec for pod in pods}
        number = {spec: number for number, spec in enumerate(specs)}
        last: dict[bool, tuple[Any, Any]] = {False: (None, None), True: (None, None)}
        rows: list[Any] = []
        for pod in pods:
            name, namespace, uid, version, *others = values(pod.metadata)
            node_name, status = pod.node_name, pod.status
            last_others, last_status = last[node_name != ""]
            last[node_name != ""] = others, status
            rows.append(
                (
                    number[id(pod.spec)],
                    node_name if hasher is None else hasher.text(node_name),
                    name,
                    namespace,
                    uid,
                    version,
                    None if others == last_others else others,
                    None if status == last_status else values(status),
                )
            )
        return _encode(rows), _encode([spec if hasher is None else hasher.item(spec) for spec in specs.values()])

    def _answer(self, call: int, outcome: int, value: Any) -> tuple[int, int, Any, bytes]:
        if outcome == tape.OBJECT:
            _, kind, content = self._put("", value)
            if kind == LeftOut.__name__:
                return call, tape.RAISED, "the answer is left out of the recording", b""
            return call, outcome, kind, content
        value = self._withholder.answer(outcome, value)
        return call, outcome, value if self._hasher is None else self._hasher.answer(outcome, value), b""

    def _failed(self, failed: tuple[str, str, str]) -> tuple[str, ...]:
        uid, result, message, mark = self._withholder.failed(failed)
        return (uid, result, message, mark) if self._hasher is None else self._hasher.failed((uid, result, mark))

    def _object(self, item: Any) -> bytes:
        item = self._withholder.item(item)
        return _encode(item if self._hasher is None else self._hasher.item(item))


def _too_large(size: int, bytes_max: int) -> str:
    return f"it would take {size:,} bytes, and at most {bytes_max:,} are kept"


# ---------------------------------------------------------------- reading


def entries_of(content: bytes, leave_out: LeaveOut = _ignore) -> list[tape.Entry]:
    """The entries of a block, with their objects.

    Args:
        leave_out: called with each object that was left out when it was written, and with each that cannot be read. The
            block is read without them.

    Raises:
        ValueError: this is not what a `ColumnWriter` returns.
    """
    try:
        kinds, *encoded = _decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if len(kinds) > _ENTRIES_MAX:
        raise ValueError("it has too many entries")
    if kinds == _ONE_POD and (problem := _too_long(_POD, encoded[_POD]) or _too_long(_SPECS, encoded[_SPECS])):
        # An earlier podium has written it.
        leave_out(LeftOut("Pod", "of a name that is not read", problem))
        return []
    columns = [_column(kind, each) for kind, each in enumerate(encoded)]
    # A pod has the one spec with that content; see `objects.core`.
    specs = [Pod(spec=each).spec for each in columns[_SPECS]]
    columns[_SPECS] = []
    if _counts(kinds) != [len(column) for column in columns]:
        raise ValueError("it has not as many values as entries")
    rows = [_rows(kind, column, specs) for kind, column in enumerate(columns)]
    entries = []
    for kind in kinds:
        entry = next(rows[kind])
        if kind == tape.PUT and isinstance(item := tape.item_of(entry), LeftOut):
            leave_out(item)
        else:
            entries.append(entry)
    return entries


def _too_long(kind: int, encoded: msgspec.Raw) -> str:
    """Why a column is not read: memory is not taken for it. Nothing if it is short enough."""
    size, bytes_max = memoryview(encoded).nbytes, _BYTES_MAX.get(kind, BLOCK_BYTES_MAX)
    return f"{size:,} bytes, and at most {bytes_max:,} are read" if size > bytes_max else ""


def _column(kind: int, encoded: msgspec.Raw) -> list[Any]:
    """The values of a kind. Raises: ValueError."""
    if problem := _too_long(kind, encoded):
        raise ValueError(f"its lists are too long: {problem}")
    try:
        return _DECODERS[kind].decode(encoded)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{_name(kind)} in it is not as podium writes it: {error}") from None


def _name(kind: int) -> str:
    return tape.NAMES[kind if kind < _POD else tape.PUT]


def _rows(kind: int, column: Sequence[Any], specs: Sequence[PodSpec]) -> Iterator[tape.Entry]:
    """The entries of one kind. Raises: ValueError, at one that makes no sense."""
    if kind == _POD:
        return _pods(column, specs)
    if kind == tape.PUT:
        return ((kind, path, _readable(name, item)) for path, name, item in column)
    if kind == tape.ANSWER:
        return ((kind, *_answer(*each)) for each in column)
    if kind in (tape.REMOVE, tape.DECIDED, tape.FAILED):
        return ((kind, *each) for each in column)
    return repeat((kind,)) if kind == tape.END else zip(repeat(kind), column)


def _pods(column: Sequence[Any], specs: Sequence[PodSpec]) -> Iterator[tape.Entry]:
    last: dict[bool, tuple[Any, PodStatus | None]] = {False: (None, None), True: (None, None)}
    for number, node_name, *own, others, status in column:
        last_others, last_status = last[node_name != ""]
        others = last_others if others is None else others
        status = last_status if status is None else PodStatus(**dict(zip(_STATUS, status, strict=True)))
        if number >= len(specs) or others is None or status is None:
            raise ValueError("a pod in it is not as podium writes it")
        last[node_name != ""] = others, status
        metadata = ObjectMeta(**dict(zip(_META, (*own, *others), strict=True)))
        yield tape.PUT, PODS.path, Pod(metadata=metadata, spec=specs[number], status=status, node_name=node_name)


def _readable(name: str, content: bytes) -> Any:
    """The object of a `PUT`, or what is left out if it is none that podium writes."""
    try:
        return _object(name, content)
    except ValueError as error:
        return LeftOut(cut(name), "of a name that is not read", str(error))


def _object(name: str, content: bytes) -> Any:
    if len(content) > _OBJECT_BYTES_MAX:
        raise ValueError("an object in it is too large")
    try:
        return _OBJECTS[name].decode(content)
    except (KeyError, RecursionError, msgspec.DecodeError) as error:
        raise ValueError(f"an object in it is not as podium writes it: {error!r}") from None


def _answer(call: int, outcome: int, value: Any, content: bytes) -> tuple[int, int, Any]:
    if type(value) not in _OUTCOMES.get(outcome, ()):
        raise ValueError(f"an answer in it is not as podium writes it: {outcome} with {value!r}")
    if outcome == tape.OBJECT:
        return call, outcome, _object(value, content)
    if outcome == tape.REFUSED:
        try:
            tape.error_of(value)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"an answer in it is not as podium writes it: {error!r}") from None
    return call, outcome, value
