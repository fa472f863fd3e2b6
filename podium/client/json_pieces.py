"""Decodes a long JSON array or object piece by piece.

Decoding holds the interpreter, in whatever thread it runs: cut into pieces, an answer of megabytes delays the event
loop by one piece at a time. Never builds more than one piece.

The text is cut where one item ends and another seems to begin. The same bytes can stand inside an item, but a piece
that begins with an item and decodes once it is put in brackets must be whole items: a cut at a wrong place does not
decode, and a later one is tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

T = TypeVar("T")

PIECE_BYTES: Final = 64 * 1024
PIECE_BYTES_MAX: Final = 4 * PIECE_BYTES
"""No item may be longer, so that no piece is."""
_NEAR_PLACES: Final = 32

_BETWEEN_OBJECTS = re.compile(rb"\}[ \t\r\n]*(,)[ \t\r\n]*\{")
_BEFORE_NAME = re.compile(rb'\}[ \t\r\n]*(,)[ \t\r\n]*"')

_decode_list: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_map: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def list_items(text: Raw) -> Iterator[Raw]:
    """Yield the items of an array of objects; none of `null`.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError: it is no array, or an item is too long.
    """
    return chain.from_iterable(_pieces(bytes(text), b"[", b"]", _BETWEEN_OBJECTS, _decode_list))


def map_items(text: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the members of an object whose values are objects; none of `null`. Raises: as `list_items`."""
    pieces = _pieces(bytes(text), b"{", b"}", _BEFORE_NAME, _decode_map)
    return chain.from_iterable(piece.items() for piece in pieces)


def _pieces(
    text: bytes, opening: bytes, closing: bytes, boundary: re.Pattern[bytes], decode: Callable[[bytes], T]
) -> Iterator[T]:
    if text == b"null":
        return
    if not text.startswith(opening):
        raise msgspec.DecodeError(f"expected {opening.decode()}, got {text[:1].decode('ascii', 'replace')}")
    start, size, failures = 1, PIECE_BYTES, 0
    while match := boundary.search(text, start + size, start + PIECE_BYTES_MAX):
        comma = match.start(1)
        try:
            piece = decode(opening + text[start:comma] + closing)
        except msgspec.DecodeError:
            failures += 1
            # The next places are within the same item; from then on ever larger steps bound the cost.
            size = comma - start + (1 << max(failures - _NEAR_PLACES, 0))
            continue
        yield piece
        start, size, failures = comma + 1, PIECE_BYTES, 0
    if len(text) - start > PIECE_BYTES_MAX:
        raise msgspec.DecodeError(f"an item of more than {PIECE_BYTES_MAX} bytes, or items that are not objects")
    yield decode(opening + text[start:])
