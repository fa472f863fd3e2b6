"""Reads files that may be compressed with gzip."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from typing import Any, BinaryIO, Final, cast

from podium.lib.bounded_read import read_all

BYTES_MAX: Final = 1024**3
"""The size limit of an unpacked file, and of one of its lines. A dump of the largest clusters has half this size."""

_GZIP: Final = b"\x1f\x8b"


@contextmanager
def unpacked_content(file: BufferedReader[Any]) -> Iterator[BinaryIO]:
    """Yield the content of an open file, unpacked if it is compressed. The file stays open."""
    if file.peek(2)[:2] == _GZIP:
        with gzip.open(file) as content:
            yield cast("BinaryIO", content)
    else:
        yield cast("BinaryIO", file)


def read_unpacked(name: str) -> bytes:
    """Read a whole file. Raises: OSError, EOFError, zlib.error: it cannot be read or unpacked."""
    with BufferedReader(FileIO(name)) as file, unpacked_content(file) as content:
        return read_all(content, BYTES_MAX)
