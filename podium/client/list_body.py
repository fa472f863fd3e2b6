"""The body of a list, decoded while it arrives.

Owns the bytes that are not decoded yet. Never waits, and never holds the whole list.

The items are cut where one ends and another seems to begin: at `},{"metadata":`, or with `apiVersion` or `kind` first.
The same bytes can stand inside an item (two `volumeClaimTemplates`), though not inside a string, whose quotes are
escaped. But bytes that start at the start of an item and decode as an array once they are put in brackets must be
whole items: a cut at a wrong place does not decode, and the next place is tried.

Source: apimachinery v0.36 pkg/runtime/serializer/json/collections.go, how API servers write a list.
Cost: one search and one decode for each piece of items, and one copy of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Generic

from podium.objects.api_errors import Malformed
from podium.objects.resource_types import ObjectT
from podium.objects.wire import ObjectDecoder, Page

_PIECE_BYTES: Final = 64 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024
_REST_BYTES_MAX: Final = 16 * 1024 * 1024

_HEAD = re.compile(rb'"items":(?=\[)')
_BOUNDARY = re.compile(rb'\},\{"(?:metadata|apiVersion|kind)":')
_BOUNDARY_BYTES_MAX: Final = len(b'},{"apiVersion":')
_OPENS, _CLOSES, _COMMA = b"[],"


class ListBody(Generic[ObjectT]):
    """Decodes one list from chunks of bytes of any size.

    Invariant: the items of all `feed` and of `finish`, in this order, are the list's, however the bytes were cut. A
    list in an unexpected layout is decoded as a whole at the end.
    """

    def __init__(self, decoder: ObjectDecoder[ObjectT]) -> None:
        self._decoder = decoder
        self._head = b""
        self._rest = bytearray()
        self._search_from = _PIECE_BYTES

    def feed(self, chunk: bytes) -> Iterator[Page[ObjectT]]:
        """Add bytes and yield the items that are complete, some at a time. Exhaust the iterator before the next `feed`.

        Raises: `Malformed` for an item, or a list that cannot be cut, beyond all bounds.
        """
        self._rest += chunk
        if self._head or self._read_head():
            yield from self._pieces()
        if len(self._rest) > _REST_BYTES_MAX:
            raise Malformed(f"more than {_REST_BYTES_MAX} bytes of a list without the end of an item")

    def finish(self) -> Page[ObjectT]:
        """Return the remaining items, the list's version, and the continue token.

        Raises: `Malformed` if the bytes are not a complete list.
        """
        return self._decoder.page(self._head + self._rest)

    def _read_head(self) -> bool:
        match = _HEAD.search(self._rest, 0, _HEAD_BYTES_MAX)
        if match is None or not self._is_list(head := bytes(self._rest[: match.end()])):
            return False
        self._head = head
        del self._rest[: len(head)]
        return True

    def _is_list(self, head: bytes) -> bool:
        """Return whether this is the beginning, up to its items, of a list of the expected kind."""
        try:
            self._decoder.page(head + b"[]}")
        except Malformed:
            return False
        return True

    def _pieces(self) -> Iterator[Page[ObjectT]]:
        text = self._rest
        while match := _BOUNDARY.search(text, self._search_from):
            comma = match.start() + 1
            # Decoded in place: the comma is replaced by the closing bracket, and then by the opening one of the rest.
            text[comma] = _CLOSES
            try:
                with memoryview(text) as view, view[: comma + 1] as array:
                    piece = self._decoder.items(array)
            except Malformed:
                text[comma] = _COMMA
                # Doubling the distance keeps the cost of failed decodes proportional to the size.
                self._search_from = 2 * comma
                continue
            text[comma] = _OPENS
            del text[:comma]
            self._search_from = _PIECE_BYTES
            yield piece
        self._search_from = max(self._search_from, len(text) - _BOUNDARY_BYTES_MAX + 1)
