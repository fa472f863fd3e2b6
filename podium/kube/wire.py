"""Bytes of lists and watches into typed objects.

Owns the decoders. An object that does not decode becomes a `BrokenObject` and leaves its neighbours alone.
Never keeps anything.

Cost: one decode straight into the typed object; only a line or page that fails it is looked at again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeAlias

import msgspec
from msgspec import Struct, field

from podium.kube import api_errors
from podium.kube.resource_types import ObjectT, ResourceType
from podium.kube.whole_objects import Keep

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
_BOOKMARK = "BOOKMARK"
_ERROR = "ERROR"

# Every API server writes the type first; a line that starts otherwise only takes the slow path.
_NOT_A_CHANGE = (b'{"type":"BOOKMARK"', b'{"type":"ERROR"')

_DEPTH_MAX: Final = 10_000
"""How deep an API server lets objects nest, which is Go's own limit: a pod's `managedFields` may, to no purpose."""


class BrokenObject(Struct, frozen=True):
    """An object that cannot be understood, as far as it can be named.

    `detail` says what was expected, and where: a path such as `$.spec.priority`.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    detail: str

    @property
    def key(self) -> str:
        """As `KubeObject.key`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Change(Struct, Generic[ObjectT], frozen=True, gc=False):
    """An object was added, modified or deleted."""

    type: str
    object: ObjectT


class BrokenChange(Struct, frozen=True):
    """A change of an object that does not decode."""

    type: str
    object: BrokenObject


class Bookmark(Struct, frozen=True):
    """Everything up to this version has been sent."""

    resource_version: str


Event: TypeAlias = Change[ObjectT] | BrokenChange | Bookmark


class Page(Struct, Generic[ObjectT], frozen=True):
    """Some items of a list. At the end of a page there is a version; an empty `continue_token` means the last page."""

    items: list[ObjectT]
    broken: list[BrokenObject]
    resource_version: str = ""
    continue_token: str = ""


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str | None = field(default=None, name="continue")


class _TypedPage(Struct, Generic[ObjectT]):
    metadata: _ListMeta
    items: list[ObjectT] | None = None


class _RawPage(Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _RawChange(Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Named(Struct):
    # Raw: what is not a name is skipped, however large it is.
    metadata: dict[str, msgspec.Raw] = field(default_factory=dict)


class _BookmarkMeta(Struct, rename="camel"):
    resource_version: str


class _BookmarkObject(Struct):
    metadata: _BookmarkMeta


_decode_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_raw_page = msgspec.json.Decoder(_RawPage).decode
_decode_raw_change = msgspec.json.Decoder(_RawChange).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_any = msgspec.json.Decoder().decode

NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""A fast decode has no more room for nesting than its caller leaves it; the slow one makes room."""


class ObjectDecoder(Generic[ObjectT]):
    """Decodes lists and watches of one resource type.

    Args: `keep` makes of each object and its bytes what is handed out; without it, the bytes are let go.
    """

    def __init__(self, resource: ResourceType[ObjectT], keep: Keep[ObjectT] | None = None) -> None:
        self._kind = resource.kind
        self._type = resource.type
        # msgspec understands a parametrised struct at run time; the type checker does not see that.
        self._decode_page = msgspec.json.Decoder(_TypedPage[resource.type]).decode  # type: ignore[name-defined]
        self._decode_items = msgspec.json.Decoder(list[resource.type]).decode  # type: ignore[name-defined]
        decode_change = msgspec.json.Decoder(Change[resource.type]).decode  # type: ignore[name-defined]
        self._decode_object = msgspec.json.Decoder(resource.type).decode
        self._keep = keep
        self._decode_change = decode_change if keep is None else self._decode_change_and_keep

    def page(self, body: bytes) -> Page[ObjectT]:
        """Decode one page of a list.

        Raises: `Malformed` if it is not a list at all.
        """
        if self._keep is not None:
            with room_for_nesting():
                return self._page_item_by_item(body)
        try:
            page = self._decode_page(body)
        except NOT_DECODED:
            with room_for_nesting():
                return self._page_item_by_item(body)
        return Page(page.items or [], [], page.metadata.resource_version, page.metadata.continue_token or "")

    def items(self, array: bytes | memoryview) -> Page[ObjectT]:
        """Decode some items of a list, given as an array; of the bytes nothing is kept.

        Raises: `Malformed` if it is no array.
        """
        if self._keep is None:
            try:
                return Page(self._decode_items(array), [])
            except NOT_DECODED:
                pass
        with room_for_nesting():
            try:
                raws = _decode_raw_items(bytes(array))
            except NOT_DECODED as error:
                raise api_errors.Malformed(f"no items of {self._kind}: {error}") from error
            return Page(*self._one_by_one(raws))

    def event(self, line: bytes) -> Event[ObjectT]:
        """Decode one line of a watch.

        Raises: the `ApiError` that an ERROR event carries; `Malformed` if the line is no event at all.
        """
        if not line.startswith(_NOT_A_CHANGE):
            try:
                change: Change[ObjectT] = self._decode_change(line)
            except NOT_DECODED:
                with room_for_nesting():
                    return self._event_in_two_steps(line)
            if change.type in _CHANGES:
                return change
        with room_for_nesting():
            return self._event_in_two_steps(line)

    def _page_item_by_item(self, body: bytes) -> Page[ObjectT]:
        try:
            page = _decode_raw_page(body)
        except NOT_DECODED as error:
            raise api_errors.Malformed(f"not a list of {self._kind}: {error}") from error
        items, broken = self._one_by_one(page.items or ())
        return Page(items, broken, page.metadata.resource_version, page.metadata.continue_token or "")

    def _one_by_one(self, raws: Iterable[msgspec.Raw]) -> tuple[list[ObjectT], list[BrokenObject]]:
        items: list[ObjectT] = []
        broken: list[BrokenObject] = []
        for raw in raws:
            found: ObjectT | BrokenObject
            try:
                found = self._decode_object(raw)
            except NOT_DECODED:
                found = self._second_try(raw)
            if isinstance(found, BrokenObject):
                broken.append(found)
            else:
                items.append(found if self._keep is None else self._keep(found, raw))
        return items, broken

    def _decode_change_and_keep(self, line: bytes) -> Change[ObjectT]:
        change = _decode_raw_change(line)
        assert self._keep is not None
        return Change(change.type, self._keep(self._decode_object(change.object), change.object))

    def _event_in_two_steps(self, line: bytes) -> Event[ObjectT]:
        try:
            event = _decode_raw_change(line)
        except msgspec.ValidationError as error:
            raise api_errors.Malformed(f"not a watch event of {self._kind}: {line[:100]!r}") from error
        except NOT_DECODED as error:
            raise _not_json(self._kind, error) from error
        if event.type == _ERROR:
            raise _error(_parse(event.object, self._kind))
        if event.type == _BOOKMARK:
            return _bookmark(_parse(event.object, self._kind))
        if event.type not in _CHANGES:
            raise api_errors.Malformed(f"watch event of unknown type {event.type!r}")
        found = self._second_try(event.object)
        if isinstance(found, BrokenObject):
            return BrokenChange(event.type, found)
        return Change(event.type, found if self._keep is None else self._keep(found, event.object))

    def _second_try(self, raw: msgspec.Raw) -> ObjectT | BrokenObject:
        """Decode an object with more room, nulls taken for absent fields as Go does.

        Cost: of a broken object without nulls, of which API servers write few, only the beginning is built.
        """
        try:
            if b"null" in bytes(raw):
                return self._decode_object(msgspec.json.encode(_without_nulls_within(raw, _LEVELS_READ)))
            return self._decode_object(raw)
        except msgspec.ValidationError as error:
            return _broken(self._kind, raw, str(error))
        except NOT_DECODED as error:
            raise _not_json(self._kind, error) from error


_CHANGES = frozenset((ADDED, MODIFIED, DELETED))


@contextmanager
def room_for_nesting() -> Iterator[None]:
    """As much recursion as the deepest object needs; the stack has room for twice that."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + _DEPTH_MAX)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _parse(content: bytes | msgspec.Raw, kind: str) -> Any:
    try:
        return _decode_any(content)
    except NOT_DECODED as error:
        raise _not_json(kind, error) from error


def _not_json(kind: str, error: Exception) -> api_errors.Malformed:
    return api_errors.Malformed(f"not JSON, where {kind} was expected: {error}")


def _without_nulls_within(raw: msgspec.Raw, levels: int) -> Any:
    """What encodes to the same JSON without nulls down to so many levels.

    Cost: only what has a null in it is taken apart, level by level, and nothing is built of the rest.
    """
    content = bytes(raw)
    if not levels or b"null" not in content:
        return raw
    if content.startswith(b"{"):
        fields = _decode_raw_fields(content).items()
        return {key: _without_nulls_within(value, levels - 1) for key, value in fields if bytes(value) != b"null"}
    if content.startswith(b"["):
        items = _decode_raw_items(content)
        return [_without_nulls_within(value, levels - 1) for value in items if bytes(value) != b"null"]
    return raw


_LEVELS_READ: Final = 16
"""Deeper in an object there is nothing that is read."""


def without_nulls(content: Any) -> Any:
    """Parsed JSON with the nulls taken out, which Go takes for absent."""
    # Loops, since a comprehension would take a second frame for each level of nesting.
    if isinstance(content, dict):
        fields = {}
        for key, value in content.items():
            if value is not None:
                fields[key] = without_nulls(value) if type(value) in _NESTING else value
        return fields
    if isinstance(content, list):
        items = []
        for value in content:
            if value is not None:
                items.append(without_nulls(value) if type(value) in _NESTING else value)  # noqa: PERF401
        return items
    return content


_NESTING = frozenset((dict, list))


def _broken(kind: str, raw: msgspec.Raw, detail: str) -> BrokenObject:
    try:
        metadata = _decode_named(raw).metadata
    except NOT_DECODED:
        metadata = {}

    def text(field_name: str) -> str:
        try:
            return _decode_text(metadata.get(field_name, b'""'))
        except NOT_DECODED:
            return ""

    return BrokenObject(kind, text("namespace"), text("name"), text("uid"), text("resourceVersion"), detail)


def _bookmark(content: Any) -> Bookmark:
    try:
        metadata = msgspec.convert(content, _BookmarkObject).metadata
    except msgspec.ValidationError as error:
        raise api_errors.Malformed(f"bookmark: {error}") from error
    return Bookmark(metadata.resource_version)


def _error(content: Any) -> api_errors.ApiError:
    try:
        return api_errors.from_status(msgspec.convert(content, api_errors.Status))
    except msgspec.ValidationError:
        return api_errors.Malformed(f"error event without a status: {content!r:.200}")
