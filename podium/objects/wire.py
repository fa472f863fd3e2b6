"""Decoding lists and watches into typed objects.

Owns the decoders. An object that does not decode becomes a `BrokenObject`, or a partial object if it must count
(`objects.unreadable`), and does not affect its neighbours. Never keeps anything.

Cost: one decode straight into the typed object; only a line or page that fails is decoded again step by step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeAlias

import msgspec
from msgspec import Struct, field

from podium.objects import api_errors
from podium.objects.names import is_uid, name_error
from podium.objects.objects_with_json import Keep
from podium.objects.resource_types import ObjectT, ResourceType
from podium.objects.unreadable import is_partial, readable_part, with_another_name

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
_BOOKMARK = "BOOKMARK"
_ERROR = "ERROR"

# Every API server writes the type first; a line that starts otherwise only takes the slow path.
_NOT_A_CHANGE = (b'{"type":"BOOKMARK"', b'{"type":"ERROR"')

_DEPTH_MAX: Final = 10_000
"""How deep an API server lets objects nest: Go's own limit. A pod's `managedFields` can reach it."""


class BrokenObject(Struct, frozen=True):
    """An object that cannot be decoded, with as much of its identity as could be read.

    `detail` names the expected type and the path, such as `$.spec.priority`.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    detail: str

    @property
    def key(self) -> str:
        """`<namespace>/<name>`, or the name if there is no namespace."""
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
    """Some items of a list. The end of a page has a version; an empty `continue_token` means the last page."""

    items: list[ObjectT]
    broken: list[BrokenObject]
    resource_version: str = ""
    continue_token: str = ""


class _ListMeta(Struct, rename="camel"):
    resource_version: str
    continue_token: str | None = field(default=None, name="continue")


class _Typed(Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _TypedPage(_Typed, Generic[ObjectT], kw_only=True):
    metadata: _ListMeta
    items: list[ObjectT] | None


class _RawPage(_Typed, kw_only=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None


class _RawChange(Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Named(Struct):
    # Raw: fields other than names are skipped without decoding, however large they are.
    metadata: dict[str, msgspec.Raw] = field(default_factory=dict)


class _BookmarkMeta(Struct, rename="camel"):
    resource_version: str


class _BookmarkObject(Struct):
    metadata: _BookmarkMeta
    kind: str = ""


_decode_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_typed = msgspec.json.Decoder(_Typed).decode
_decode_raw_page = msgspec.json.Decoder(_RawPage).decode
_decode_raw_change = msgspec.json.Decoder(_RawChange).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_any = msgspec.json.Decoder().decode

NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of the fast decode. Its nesting is limited by the recursion limit; the slow decode raises that limit."""


class ObjectDecoder(Generic[ObjectT]):
    """Decodes lists and watches of one resource type.

    Args: `keep` turns each object and its bytes into the returned object; without it, the bytes are dropped.
    """

    def __init__(self, resource: ResourceType[ObjectT], keep: Keep[ObjectT] | None = None) -> None:
        self._kind = resource.kind
        self._type = resource.type
        self._list = _Typed(f"{resource.kind}List", resource.api_version)
        self._is_namespaced = resource.is_namespaced
        # msgspec understands a parametrised struct at run time; the type checker does not see that.
        self._decode_page = msgspec.json.Decoder(_TypedPage[resource.type]).decode  # type: ignore[name-defined]
        self._decode_items = msgspec.json.Decoder(list[resource.type]).decode  # type: ignore[name-defined]
        decode_change = msgspec.json.Decoder(Change[resource.type]).decode  # type: ignore[name-defined]
        self._decode_object = msgspec.json.Decoder(resource.type).decode
        self._keep = keep
        self._decode_change = decode_change if keep is None else self._decode_change_and_keep

    def page(self, body: bytes) -> Page[ObjectT]:
        """Decode one page of a list.

        Raises: `Malformed` if it is not a list of this resource: an empty answer, a `Status`, another kind's list, one
        object, or a proxy's page. Such an answer says nothing, least of all that all objects are gone.
        """
        if self._keep is not None:
            with room_for_nesting():
                return self._page_item_by_item(body)
        try:
            page = self._decode_page(body)
        except NOT_DECODED:
            with room_for_nesting():
                return self._page_item_by_item(body)
        self._check_list(page)
        return Page(
            *self._split_by_name(page.items or []), page.metadata.resource_version, page.metadata.continue_token or ""
        )

    def items(self, array: bytes | memoryview) -> Page[ObjectT]:
        """Decode some items of a list, given as an array. The bytes are not kept.

        Raises: `Malformed` if it is not an array.
        """
        if self._keep is None:
            try:
                return Page(*self._split_by_name(self._decode_items(array)))
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

        Raises: the `ApiError` of an ERROR event; `Malformed` if the line is not an event of this resource: then an
        unknown object may have changed.
        """
        if not line.startswith(_NOT_A_CHANGE):
            try:
                change: Change[ObjectT] = self._decode_change(line)
            except NOT_DECODED:
                with room_for_nesting():
                    return self._event_in_two_steps(line)
            if change.type in _CHANGES and (self._keep is not None or not self._flaw(change.object)):
                return change
        with room_for_nesting():
            return self._event_in_two_steps(line)

    def _page_item_by_item(self, body: bytes) -> Page[ObjectT]:
        try:
            page = _decode_raw_page(body)
        except NOT_DECODED as error:
            kind = _kind_of(body)
            instead = f", but a {kind}" if kind else ""
            raise api_errors.Malformed(f"not a {self._list.kind}{instead}: {error}") from error
        self._check_list(page)
        items, broken_objects = self._one_by_one(page.items or ())
        return Page(items, broken_objects, page.metadata.resource_version, page.metadata.continue_token or "")

    def _check_list(self, page: _TypedPage[ObjectT] | _RawPage) -> None:
        """Check the list. Raises: `Malformed` for a list of another kind, or without a version to watch from."""
        if (page.kind, page.api_version) != (self._list.kind, self._list.api_version):
            received = f"{page.kind or 'list without a kind'} ({page.api_version or 'no version'})"
            raise api_errors.Malformed(f"not a {self._list.kind} ({self._list.api_version}), but a {received}")
        if not _is_version(page.metadata.resource_version):
            raise api_errors.Malformed(f"a {self._list.kind} of version {page.metadata.resource_version!r:.40}")

    def _flaw(self, item: ObjectT) -> str:
        meta = item.metadata
        return name_error(meta.name, meta.namespace, meta.uid, is_namespaced=self._is_namespaced)

    def _split_by_name(self, items: list[ObjectT]) -> tuple[list[ObjectT], list[BrokenObject]]:
        """Separate objects with an invalid name, namespace or uid."""
        flaws = {id(item): self._rename(item, reason) for item in items if (reason := self._flaw(item))}
        if not flaws:
            return items, []
        named_items = [flaws.get(id(item), item) for item in items]
        broken_objects = [item for item in named_items if isinstance(item, BrokenObject)]
        return [item for item in named_items if not isinstance(item, BrokenObject)], broken_objects

    def _rename(self, item: ObjectT, reason: str) -> ObjectT | BrokenObject:
        part: ObjectT | None = with_another_name(item)
        if part is not None:
            return part
        meta = item.metadata
        uid = meta.uid if is_uid(meta.uid) else ""
        return BrokenObject(self._kind, meta.namespace, meta.name, uid, meta.resource_version, reason)

    def _one_by_one(self, raws: Iterable[msgspec.Raw]) -> tuple[list[ObjectT], list[BrokenObject]]:
        items: list[ObjectT] = []
        broken_objects: list[BrokenObject] = []
        for raw in raws:
            decoded_item: ObjectT | BrokenObject
            try:
                decoded_item = self._decode_object(raw)
            except NOT_DECODED:
                decoded_item = self._second_try(raw)
            if not isinstance(decoded_item, BrokenObject) and (reason := self._flaw(decoded_item)):
                decoded_item = self._rename(decoded_item, reason)
            if isinstance(decoded_item, BrokenObject):
                broken_objects.append(decoded_item)
            else:
                items.append(self._with_json(decoded_item, raw))
        return items, broken_objects

    def _decode_change_and_keep(self, line: bytes) -> Change[ObjectT]:
        change = _decode_raw_change(line)
        assert self._keep is not None
        item = self._decode_object(change.object)
        if reason := self._flaw(item):
            raise msgspec.ValidationError(reason)
        return Change(change.type, self._keep(item, change.object))

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
            return _bookmark(_parse(event.object, self._kind), self._kind)
        if event.type not in _CHANGES:
            raise api_errors.Malformed(f"watch event of unknown type {event.type!r}")
        decoded_item = self._second_try(event.object)
        if not isinstance(decoded_item, BrokenObject) and (reason := self._flaw(decoded_item)):
            decoded_item = self._rename(decoded_item, reason)
        if isinstance(decoded_item, BrokenObject):
            if not decoded_item.name:
                raise api_errors.Malformed(f"watch event of a {self._kind} without a name: {decoded_item.detail}")
            return BrokenChange(event.type, decoded_item)
        return Change(event.type, self._with_json(decoded_item, event.object))

    def _with_json(self, item: ObjectT, raw: msgspec.Raw) -> ObjectT:
        return item if self._keep is None or is_partial(item) else self._keep(item, raw)

    def _second_try(self, raw: msgspec.Raw) -> ObjectT | BrokenObject:
        """Decode an object with a higher recursion limit, and with nulls taken for absent fields as Go does.

        Raises: `Malformed` if its `kind` is another one.
        Cost: for a broken object without nulls, which is the usual one, only its beginning is built.
        """
        try:
            if b"null" in bytes(raw):
                return self._decode_object(msgspec.json.encode(_without_nulls_within(raw, _LEVELS_READ)))
            return self._decode_object(raw)
        except msgspec.ValidationError as error:
            kind = _kind_of(raw)
            if kind not in ("", self._kind):
                raise api_errors.Malformed(f"a {kind} came where a {self._kind} was expected") from error
            part: ObjectT | None = readable_part(self._type, raw, str(error))
            return _broken_object(self._kind, raw, str(error)) if part is None else part
        except NOT_DECODED as error:
            raise _not_json(self._kind, error) from error


_CHANGES = frozenset((ADDED, MODIFIED, DELETED))


@contextmanager
def room_for_nesting() -> Iterator[None]:
    """Raise the recursion limit to the depth of the deepest object. The stack has room for twice that."""
    former_limit = sys.getrecursionlimit()
    sys.setrecursionlimit(former_limit + _DEPTH_MAX)
    try:
        yield
    finally:
        sys.setrecursionlimit(former_limit)


def _parse(content: bytes | msgspec.Raw, kind: str) -> Any:
    try:
        return _decode_any(content)
    except NOT_DECODED as error:
        raise _not_json(kind, error) from error


def _not_json(kind: str, error: Exception) -> api_errors.Malformed:
    return api_errors.Malformed(f"not JSON, where {kind} was expected: {error}")


def _without_nulls_within(raw: msgspec.Raw, levels: int) -> Any:
    """Return the same JSON without nulls down to this many levels.

    Cost: only parts that contain a null are decoded, level by level.
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
"""The depth of the deepest field that is read."""


def without_nulls(content: Any) -> Any:
    """Remove nulls, which Go treats as absent fields, from parsed JSON; return the same object if it contains none."""
    # Encoding takes a tenth of the time of the copy, and most content has no null.
    with suppress(TypeError, ValueError, OverflowError, RecursionError):
        if b"null" not in msgspec.json.encode(content):
            return content
    return _copy_without_nulls(content)


def _copy_without_nulls(content: Any) -> Any:
    # Loops, since a comprehension would take a second frame for each level of nesting.
    if isinstance(content, dict):
        fields = {}
        for key, value in content.items():
            if value is not None:
                fields[key] = _copy_without_nulls(value) if type(value) in _NESTING else value
        return fields
    if isinstance(content, list):
        items = []
        for value in content:
            if value is not None:
                items.append(_copy_without_nulls(value) if type(value) in _NESTING else value)  # noqa: PERF401
        return items
    return content


_NESTING = frozenset((dict, list))


def _broken_object(kind: str, raw: msgspec.Raw, detail: str) -> BrokenObject:
    try:
        metadata = _decode_named(raw).metadata
    except NOT_DECODED:
        metadata = {}

    def text(field_name: str) -> str:
        try:
            return _decode_text(metadata.get(field_name, b'""'))
        except NOT_DECODED:
            return ""

    uid = text("uid")
    # A different uid means that the known object is gone, so only a valid uid may be used.
    uid = uid if is_uid(uid) else ""
    return BrokenObject(kind, text("namespace"), text("name"), uid, text("resourceVersion"), detail)


def _kind_of(content: bytes | msgspec.Raw) -> str:
    """Return the object's `kind`; empty if it has none."""
    try:
        return _decode_typed(content).kind
    except NOT_DECODED:
        return ""


def _is_version(text: str) -> bool:
    """Return True if a watch can begin at this version: versions are integers, and 0 stands for any.

    Source: KEP-5504, comparable resource versions.
    """
    return text.isascii() and text.isdecimal() and not text.startswith("0")


def _bookmark(content: Any, kind: str) -> Bookmark:
    try:
        bookmark = msgspec.convert(content, _BookmarkObject)
    except msgspec.ValidationError as error:
        raise api_errors.Malformed(f"bookmark: {error}") from error
    if bookmark.kind not in ("", kind) or not _is_version(bookmark.metadata.resource_version):
        raise api_errors.Malformed(f"bookmark of {kind}: {content!r:.200}")
    return Bookmark(bookmark.metadata.resource_version)


def _error(content: Any) -> api_errors.ApiError:
    try:
        return api_errors.from_status(msgspec.convert(content, api_errors.Status))
    except msgspec.ValidationError:
        return api_errors.Malformed(f"error event without a status: {content!r:.200}")
