"""Compressed bodies, in steps that other tasks can bear."""

from __future__ import annotations

import gzip
import zlib

import pytest

from podium.client.content_coding import Decompressor, decompressor
from podium.objects.api_errors import Malformed


def pieces(decompressing: Decompressor, data: bytes, size: int) -> list[bytes]:
    return [piece for start in range(0, len(data), size) for piece in decompressing.feed(data[start : start + size])]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_members_of_gzip_of_any_number_are_one_body_however_they_were_cut(size: int) -> None:
    members = [b"", b"one", b"two" * 9999, b""] * 5
    data = b"".join(map(gzip.compress, members)) + b"\0" * 20
    assert b"".join(pieces(Decompressor("gzip"), data, size)) == b"".join(members)


@pytest.mark.long
def test_no_step_is_large_and_growth_has_a_limit() -> None:
    bomb = zlib.compress(b" " * 100_000_000)
    sizes = []
    with pytest.raises(Malformed, match="grows"):
        sizes += [len(piece) for piece in Decompressor("deflate").feed(bomb)]
    pieces = Decompressor("deflate").feed(bomb)
    assert max(len(next(pieces)) for _ in range(100)) <= 256 * 1024


@pytest.mark.long
def test_a_long_body_that_grows_as_lists_do_is_read_to_its_end() -> None:
    """Twice as much as may grow from a few bytes."""
    items = b"".join(b'{"uid":"%032x","labels":"%s"},' % (number * 2**90 // 7, b"x" * 900) for number in range(140_000))
    assert sum(map(len, Decompressor("gzip").feed(gzip.compress(items, 1)))) == len(items)


def test_many_small_members_take_a_step_each() -> None:
    data = gzip.compress(b"") * 13_000
    assert len(list(Decompressor("gzip").feed(data))) >= 13_000


@pytest.mark.parametrize("content_encoding", ["", "identity", " , Identity"])
def test_a_body_that_is_not_compressed_needs_nothing(content_encoding: str) -> None:
    assert decompressor(content_encoding) is None
