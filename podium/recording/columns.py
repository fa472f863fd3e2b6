"""Encodes entries as columns, the content of a block, and decodes them.

Owns that format: the kinds of the entries in order, a column of values per kind, and the specs that pods share. So the
recorder notes an entry with two appends, and the writer encodes a column at a time. Never knows where the bytes are
stored. The reader checks types and sizes, since a recording may come from an untrusted source.
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
from podium.objects.custom_resources import custom_resources
from podium.objects.meta import ObjectMeta
from podium.objects.node_metrics import NodeMetricsReport
from podium.objects.objects_with_json import NodeWithJson, PodWithJson
from podium.objects.resource_types import PODS
from podium.recording import entries
from podium.recording.hashed_names import NameHasher
from podium.recording.redaction import Redactor
from podium.recording.segments import BLOCK_BYTES_MAX

T = TypeVar("T")
Columns: TypeAlias = list[list[Any]]
"""The values of the entries, by kind."""

_POD: Final = len(entries.KIND_NAMES)
"""The kind of a `PUT` of a pod, by far the most frequent one."""
_ONE_POD: Final = bytes([_POD])
_SPECS: Final = _POD + 1
"""The column of the specs that the pods of a block share."""
_OWN_FIELDS: Final = 4
"""The first four fields of an `ObjectMeta` differ between replicas: name, namespace, uid and version."""
_ENTRIES_MAX: Final = 10_000


class LeftOut(msgspec.Struct, frozen=True):
    """Takes the place of an object that is too large, or cannot be encoded. The class name is part of the format."""

    kind: str
    key: str
    why: str

    def __str__(self) -> str:
        """Name the object, and say why it is left out."""
        return f"{self.kind} {self.key}: {self.why}"


LeaveOut: TypeAlias = Callable[[LeftOut], None]
"""Called with each object that is left out."""


def _ignore(_: LeftOut) -> None:
    """Do nothing."""


def _tuple_of(*types: Any) -> Any:
    return tuple[types]  # type: ignore[valid-type]


def _types_of(kind: Any) -> list[Any]:
    """Return the types of the fields of an object, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return [hints[name] for name in kind.__struct_fields__]


_Real: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
_Parts: TypeAlias = Annotated[list[int | _Real | bool | str | None], msgspec.Meta(max_length=10)]
# Bounds in the types: a recording may come from a stranger, so that nothing is read that podium would not write.
_VALUES: Final[Mapping[int, Any]] = {
    entries.NOW: int | _Real,
    entries.MONOTONIC: int | _Real,
    entries.READ: int | _Real | bool | None,
    entries.PUT: tuple[str, str, bytes],
    entries.REMOVE: tuple[str, str],
    entries.SIGNAL: int,
    entries.RESUME: int,
    entries.COMPOSE: int,
    entries.ANSWER: tuple[int, int, bool | str | _Parts | None, bytes],
    entries.DECIDED: entries.Decision,
    entries.FAILED: Annotated[list[str], msgspec.Meta(min_length=3, max_length=4)],
    entries.TIME: int | _Real,
    entries.END: None,
    _POD: _tuple_of(
        Annotated[int, msgspec.Meta(ge=0)],
        *repeat(str, 1 + _OWN_FIELDS),
        _tuple_of(*_types_of(ObjectMeta)[_OWN_FIELDS:]) | None,
        _tuple_of(*_types_of(PodStatus)) | None,
    ),
    _SPECS: PodSpec,
}
"""The encoded type of the values of each kind: an object is the name of its type and its bytes."""
_OBJECT_BYTES_MAX: Final = 1 << 22
"""More than an API server accepts."""
_BYTES_MAX: Final = {
    entries.ANSWER: _OBJECT_BYTES_MAX + (1 << 20),
    entries.DECIDED: 1 << 20,
    _POD: _OBJECT_BYTES_MAX,
    _SPECS: _OBJECT_BYTES_MAX,
}
"""Limits of the columns whose values hold lists: a byte of these may take 70 bytes of memory."""
_UNENCODABLE: Final = (OverflowError, TypeError, ValueError, RecursionError)
"""Raised for objects that cannot be encoded, such as one with a number of 100 digits."""
_OUTCOMES: Final = {
    entries.VALUE: (bool, str, type(None)),
    entries.OBJECT: (str,),
    entries.REFUSED: (list,),
    entries.CANCELLED: (type(None),),
    entries.RAISED: (str,),
}
"""The value types of an `ANSWER`, by its outcome."""
_TYPES: Final[Sequence[type[Any]]] = (
    *(resource.type for resource in resource_types.ALL),
    NodeMetricsReport,
    *unreadable.PARTIAL,
    PodWithJson,
    NodeWithJson,
    LeftOut,
)
_OBJECTS: Final = {kind.__name__: msgspec.msgpack.Decoder(kind) for kind in _TYPES}
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_tuple_of(bytes, *repeat(msgspec.Raw, len(_VALUES)))).decode
_DECODERS: Final[Sequence[msgspec.msgpack.Decoder[list[Any]]]] = [
    msgspec.msgpack.Decoder(Annotated[list[_VALUES[kind]], msgspec.Meta(max_length=_ENTRIES_MAX)])  # type: ignore[valid-type]
    for kind in range(len(_VALUES))
]


# ---------------------------------------------------------------- writing


class EntryBuffer:
    """Entries that wait to be written. One thread adds them, and another one takes them.

    Invariant: the value of an entry is appended before its kind.
    """

    def __init__(self) -> None:
        self._kinds = bytearray()
        self._columns: Columns = [[] for _ in _VALUES]

    def __len__(self) -> int:
        """Return the number of entries that wait."""
        return len(self._kinds)

    def note(self, kind: int, value: Any) -> None:
        """Add an entry."""
        self._columns[kind].append(value)
        self._kinds.append(kind)

    def noting(self, kind: int, read: Callable[[], T]) -> Callable[[], T]:
        """Wrap the function such that each result becomes an entry."""
        # Bound once: this wrapper runs at each reading of the clock, several times per attempt.
        add_value, add_kind = self._columns[kind].append, self._kinds.append

        def read_and_note() -> T:
            value = read()
            add_value(value)
            add_kind(kind)
            return value

        return read_and_note

    def noting_steps(self, loop_time: Callable[[], float]) -> Callable[[int], None]:
        """Return a function that adds the event loop's time if it has changed, and then a step of a task; of 0 none."""
        add_time, add_step, add_kind = (
            self._columns[entries.TIME].append,
            self._columns[entries.RESUME].append,
            self._kinds.append,
        )
        last_s = 0.0

        def note_step(task: int) -> None:
            nonlocal last_s
            # The step sets its timers from this time.
            now_s = loop_time()
            if now_s != last_s:
                last_s = now_s
                add_time(now_s)
                add_kind(entries.TIME)
            if task:
                add_step(task)
                add_kind(entries.RESUME)

        return note_step

    def note_put(self, path: str, item: Any) -> None:
        """Add a `PUT`."""
        # As `note`, without its call: each pod is put twice or more.
        if type(item) is Pod:
            self._columns[_POD].append(item)
            self._kinds.append(_POD)
        else:
            self.note(entries.PUT, (path, item))

    def take(self, count_max: int) -> tuple[bytes, Columns]:
        """Remove the oldest entries, up to an `END`; return their kinds and their values."""
        kinds = bytes(self._kinds[:count_max])
        # A block ends where an attempt does, if it can: a recording that is cut off then ends with a whole decision.
        kinds = kinds[: kinds.find(entries.END) + 1 or count_max]
        del self._kinds[: len(kinds)]
        columns = []
        for column, count in zip(self._columns, _counts(kinds), strict=True):
            columns.append(column[:count])
            del column[:count]
        return kinds, columns


def _counts(kinds: bytes) -> list[int]:
    """Count the entries of each kind."""
    counts: list[int] = np.bincount(np.frombuffer(kinds, np.uint8), minlength=len(_VALUES)).tolist()
    return counts


class ColumnWriter:
    """Encodes the entries of one recording, in order, and redacts texts that may hold secrets.

    Args:
        hasher: hashes names.
        leave_out: called with each object that is left out because a reader would refuse it.
    """

    def __init__(self, hasher: NameHasher | None = None, leave_out: LeaveOut = _ignore) -> None:
        self._hasher = hasher
        self._leave_out = leave_out
        self._redactor = Redactor()
        self._times = {kind: entries.Times() for kind in (entries.NOW, entries.MONOTONIC, entries.TIME)}

    def contents(self, kinds: bytes, columns: Columns) -> list[bytes]:
        """Encode entries as the content of a block, or of several if a reader would refuse it for its size.

        Raises:
            ValueError: a reader would refuse an entry that cannot be left out.
        """
        columns = list(columns)
        for kind, times in self._times.items():
            columns[kind] = times.steps(columns[kind])
        columns[entries.PUT] = [self._item(path, item) for path, item in columns[entries.PUT]]
        # Answers come first: the redactor looks for their error texts in the messages of failures.
        columns[entries.ANSWER] = [self._answer(*answer) for answer in columns[entries.ANSWER]]
        columns[entries.FAILED] = [self._failure(failure) for failure in columns[entries.FAILED]]
        hasher = self._hasher
        if hasher is not None:
            columns[entries.REMOVE] = [(path, hasher.text(key)) for path, key in columns[entries.REMOVE]]
            columns[entries.DECIDED] = [hasher.decision(decision) for decision in columns[entries.DECIDED]]
        return self._contents(kinds, columns)

    def _contents(self, kinds: bytes, columns: Columns) -> list[bytes]:
        try:
            content, problem = self._content(kinds, columns)
        except _UNENCODABLE as error:
            content, problem = b"", error_text(error)
        if not problem:
            return [content]
        # A single entry that is too large must not cost the others of its block.
        if len(kinds) == 1:
            return [self._without_pod(kinds[0], columns[_POD], problem)]
        # Halved until each part is small enough: the size is known only once it is encoded.
        middle = len(kinds) // 2
        parts = zip(columns, _counts(kinds[:middle]), strict=True)
        first, second = zip(*((column[:count], column[count:]) for column, count in parts), strict=True)
        return self._contents(kinds[:middle], list(first)) + self._contents(kinds[middle:], list(second))

    def _content(self, kinds: bytes, columns: Columns) -> tuple[bytes, str]:
        """Encode one block; also return why a reader would refuse it."""
        parts = [*map(_encode, columns[:_POD]), *self._pods(columns[_POD])]
        content = _encode([kinds, *map(msgspec.Raw, parts)])
        too_large = next((kind for kind, bytes_max in _BYTES_MAX.items() if len(parts[kind]) > bytes_max), None)
        if too_large is not None:
            return content, _too_large(len(parts[too_large]), _BYTES_MAX[too_large])
        return content, _too_large(len(content), BLOCK_BYTES_MAX) if len(content) > BLOCK_BYTES_MAX else ""

    def _without_pod(self, kind: int, pods: Sequence[Pod], problem: str) -> bytes:
        """Encode a block with a `LeftOut` for the one pod that a reader would refuse."""
        if kind != _POD:
            raise ValueError(f"{_name(kind)}: {problem}")
        columns: Columns = [[] for _ in range(_POD)]
        columns[entries.PUT] = [self._left_out(PODS.path, pods[0], problem)]
        return _encode([bytes([entries.PUT]), *columns, *map(msgspec.Raw, self._pods(()))])

    def _item(self, path: str, item: Any) -> tuple[str, str, bytes]:
        try:
            content = self._object(item)
        except _UNENCODABLE as error:
            return self._left_out(path, item, error_text(error))
        if len(content) > _OBJECT_BYTES_MAX:
            return self._left_out(path, item, _too_large(len(content), _OBJECT_BYTES_MAX))
        return path, type(item).__name__, content

    def _left_out(self, path: str, item: Any, problem: str) -> tuple[str, str, bytes]:
        """Return a `PUT` with a `LeftOut` for the object."""
        key = item.key if self._hasher is None else self._hasher.text(item.key)
        left_out = LeftOut(type(item).__name__, cut(key).encode(errors="replace").decode(), problem)
        self._leave_out(left_out)
        return path, LeftOut.__name__, _encode(left_out)

    def _pods(self, pods: Sequence[Pod]) -> tuple[bytes, bytes]:
        """Encode the column of the pods, and that of the specs that they share.

        None stands for metadata and status that equal those of the last pod with, or without, a node like this one.
        """
        hasher = self._hasher
        values: Callable[[Any], Sequence[Any]] = astuple if hasher is None else hasher.values
        # Only the texts of conditions and annotations are redacted, and a pod that is created has none as a rule.
        redacted = self._redactor.item
        pods = [redacted(pod) if pod.status.conditions or pod.metadata.annotations else pod for pod in pods]
        # By identity: equal specs are one object already, and comparing them would cost more than the encoding.
        specs = {id(pod.spec): pod.spec for pod in pods}
        number = {spec: number for number, spec in enumerate(specs)}
        # Pending and bound pods alternate, and differ in most fields of their status.
        last: dict[bool, tuple[Any, Any]] = {False: (None, None), True: (None, None)}
        rows: list[Any] = []
        for pod in pods:
            name, namespace, uid, version, *common = values(pod.metadata)
            node_name, status = pod.node_name, pod.status
            last_common, last_status = last[node_name != ""]
            last[node_name != ""] = common, status
            rows.append(
                (
                    number[id(pod.spec)],
                    node_name if hasher is None else hasher.text(node_name),
                    name,
                    namespace,
                    uid,
                    version,
                    None if common == last_common else common,
                    None if status == last_status else values(status),
                )
            )
        return _encode(rows), _encode([spec if hasher is None else hasher.item(spec) for spec in specs.values()])

    def _answer(self, call: int, outcome: int, value: Any) -> tuple[int, int, Any, bytes]:
        if outcome == entries.OBJECT:
            _, kind, content = self._item("", value)
            if kind == LeftOut.__name__:
                # A replay must not go on with half an answer: for it the call has failed.
                return call, entries.RAISED, "the answer is left out of the recording", b""
            return call, outcome, kind, content
        value = self._redactor.answer(outcome, value)
        return call, outcome, value if self._hasher is None else self._hasher.answer(outcome, value), b""

    def _failure(self, failure: tuple[str, str, str]) -> tuple[str, ...]:
        uid, result, message, mark = self._redactor.failure(failure)
        return (uid, result, message, mark) if self._hasher is None else self._hasher.failure((uid, result, mark))

    def _object(self, item: Any) -> bytes:
        item = self._redactor.item(item)
        return _encode(item if self._hasher is None else self._hasher.item(item))


def _too_large(size: int, bytes_max: int) -> str:
    return f"it would take {size:,} bytes, and at most {bytes_max:,} are kept"


# ---------------------------------------------------------------- reading


def entries_of(content: bytes, leave_out: LeaveOut = _ignore) -> list[entries.Entry]:
    """Decode the entries of a block.

    Args:
        leave_out: called with each object that was not written, or cannot be read; the entries lack them.

    Raises:
        ValueError: this is not what a `ColumnWriter` returns.
    """
    try:
        kinds, *parts = _decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if len(kinds) > _ENTRIES_MAX:
        raise ValueError("it has too many entries")
    if kinds == _ONE_POD and (problem := _too_long(_POD, parts[_POD]) or _too_long(_SPECS, parts[_SPECS])):
        # Earlier versions wrote such pods.
        leave_out(LeftOut("Pod", "of a name that is not read", problem))
        return []
    columns = [_column(kind, part) for kind, part in enumerate(parts)]
    # Equal specs become one object; see `objects.core`.
    specs = [Pod(spec=spec).spec for spec in columns[_SPECS]]
    columns[_SPECS] = []
    if _counts(kinds) != [len(column) for column in columns]:
        raise ValueError("it has not as many values as entries")
    rows = [_rows(kind, column, specs) for kind, column in enumerate(columns)]
    block = [next(rows[kind]) for kind in kinds]
    # Most blocks have no object but pods.
    return [entry for entry in block if not _is_left_out(entry, leave_out)] if columns[entries.PUT] else block


def _is_left_out(entry: entries.Entry, leave_out: LeaveOut) -> bool:
    """Tell whether the entry is a `PUT` without its object, which is reported."""
    if entry[0] != entries.PUT or not isinstance(item := entries.item_of(entry), LeftOut):
        return False
    leave_out(item)
    return True


def _too_long(kind: int, part: msgspec.Raw) -> str:
    """Say why a column is too long to be read into memory; return "" if it is not."""
    size, bytes_max = memoryview(part).nbytes, _BYTES_MAX.get(kind, BLOCK_BYTES_MAX)
    return f"{size:,} bytes, and at most {bytes_max:,} are read" if size > bytes_max else ""


def _column(kind: int, part: msgspec.Raw) -> list[Any]:
    """Decode the values of a kind. Raises: ValueError."""
    if problem := _too_long(kind, part):
        raise ValueError(f"its lists are too long: {problem}")
    try:
        return _DECODERS[kind].decode(part)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"{_name(kind)} in it is not as podium writes it: {error}") from None


def _name(kind: int) -> str:
    return entries.KIND_NAMES[kind if kind < _POD else entries.PUT]


def _rows(kind: int, column: Sequence[Any], specs: Sequence[PodSpec]) -> Iterator[entries.Entry]:
    """Yield the entries of one kind. Raises: ValueError for an inconsistent entry."""
    if kind == _POD:
        return _pods(column, specs)
    if kind == entries.PUT:
        return ((kind, path, _readable(name, item)) for path, name, item in column)
    if kind == entries.ANSWER:
        return ((kind, *_answer(*answer)) for answer in column)
    if kind in (entries.REMOVE, entries.DECIDED, entries.FAILED):
        return ((kind, *values) for values in column)
    return repeat((kind,)) if kind == entries.END else zip(repeat(kind), column)


def _pods(column: Sequence[Any], specs: Sequence[PodSpec]) -> Iterator[entries.Entry]:
    last: dict[bool, tuple[Any, PodStatus | None]] = {False: (None, None), True: (None, None)}
    for number, node_name, *fields, common, status in column:
        last_common, last_status = last[node_name != ""]
        common = last_common if common is None else common
        # None is the status before it, as the writer leaves out what repeats.
        status = last_status if status is None else PodStatus(*status)
        if number >= len(specs) or common is None or status is None:
            raise ValueError("a pod in it is not as podium writes it")
        last[node_name != ""] = common, status
        metadata = ObjectMeta(*fields, *common)
        yield entries.PUT, PODS.path, Pod(metadata=metadata, spec=specs[number], status=status, node_name=node_name)


def _readable(name: str, content: bytes) -> Any:
    """Decode the object of a `PUT`; return a `LeftOut` for one that podium does not write."""
    try:
        return _object(name, content)
    except ValueError as error:
        return LeftOut(cut(name), "of a name that is not read", str(error))


def _object(name: str, content: bytes) -> Any:
    if len(content) > _OBJECT_BYTES_MAX:
        raise ValueError("an object in it is too large")
    try:
        return (_OBJECTS.get(name) or _custom_decoder(name)).decode(content)
    except (KeyError, RecursionError, msgspec.DecodeError) as error:
        raise ValueError(f"an object in it is not as podium writes it: {error!r}") from None


def _custom_decoder(name: str) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a custom resource's objects. Raises: KeyError."""
    types = {resource.type.__name__: resource.type for resource in custom_resources()}
    return msgspec.msgpack.Decoder(types[name])


def _answer(call: int, outcome: int, value: Any, content: bytes) -> tuple[int, int, Any]:
    if type(value) not in _OUTCOMES.get(outcome, ()):
        raise ValueError(f"an answer in it is not as podium writes it: {outcome} with {value!r}")
    if outcome == entries.OBJECT:
        return call, outcome, _object(value, content)
    if outcome == entries.REFUSED:
        try:
            entries.error_of(value)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"an answer in it is not as podium writes it: {error!r}") from None
    return call, outcome, value
