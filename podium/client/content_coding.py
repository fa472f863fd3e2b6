"""Bodies that a proxy has compressed though podium asks for none of it: gzip and deflate.

Owns how compressed bytes become bytes again, and how far they may grow. Never does I/O.

Whatever goes in, a step gives few bytes and takes little time, so that the caller can let other tasks run in between:
bytes go in by slices, of which each may hold the ends of many members of gzip.

Source: RFC 9110 section 8.4.1. Servers that send a raw stream of deflate where zlib's format is meant are read, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from anyio.lowlevel import checkpoint

from podium.objects.api_errors import ConnectionLost, Malformed

_SLICE_BYTES: Final = 8 * 1024
_STEP_BYTES: Final = 256 * 1024
_ANY_GROWTH_BYTES: Final = 64 * 1024 * 1024
_GROWTH_MAX: Final = 200
"""Lists of pods from one template shrink to a fortieth: their names and uids cannot be compressed."""
_GZIP: Final = ("gzip", "x-gzip")
_DEFLATE: Final = "deflate"
_NONE: Final = ("", "identity")
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_ZLIB_METHOD: Final = 8


class Decompressor:
    """Decompresses one body, in steps of at most 256 KiB."""

    def __init__(self, coding: str) -> None:
        self._is_gzip = coding in _GZIP
        self._stream: zlib._Decompress | None = None
        self._read_bytes = self._given_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add compressed bytes and yield what they hold, step by step; a step may give nothing.

        Raises: `Malformed` for bytes that are not compressed so, or that grow too much.
        """
        self._read_bytes += len(data)
        for start in range(0, len(data), _SLICE_BYTES):
            remainder = data[start : start + _SLICE_BYTES]
            while remainder:
                piece, remainder = self._step(remainder)
                self._given_bytes += len(piece)
                if self._given_bytes > _ANY_GROWTH_BYTES + _GROWTH_MAX * self._read_bytes:
                    raise Malformed(f"a compressed body that grows to more than {self._given_bytes} bytes")
                yield piece

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the decompressed bytes, and the compressed ones that are left for the next step."""
        stream = self._stream
        if stream is None or stream.eof:
            if stream is not None:
                # Between the members of gzip, and after the last, there may be zeros.
                data = data.lstrip(b"\0")
                if not data:
                    return b"", b""
            stream = self._stream = self._start(data[0])
        try:
            piece = stream.decompress(data, _STEP_BYTES)
        except zlib.error as error:
            raise Malformed(f"a compressed body that cannot be decompressed: {error}") from error
        return piece, stream.unused_data if stream.eof else stream.unconsumed_tail

    def _start(self, first: int) -> zlib._Decompress:
        if self._stream is not None and not self._is_gzip:
            raise Malformed("a compressed body that goes on after its end")
        is_wrapped = self._is_gzip or first & 0xF == _ZLIB_METHOD
        return zlib.decompressobj(_GZIP_OR_ZLIB if is_wrapped else -zlib.MAX_WBITS)


def decompressor(content_encoding: str) -> Decompressor | None:
    """Return what decompresses a body with this Content-Encoding; None if it is not compressed.

    Raises: `Malformed` for a coding that podium does not read.
    """
    codings = [name for coding in content_encoding.split(",") if (name := coding.strip().lower()) not in _NONE]
    if not codings:
        return None
    if len(codings) > 1 or codings[0] not in (*_GZIP, _DEFLATE):
        raise Malformed(
            f"Content-Encoding {content_encoding!r:.100}: only gzip and deflate are read, none is asked for"
        )
    return Decompressor(codings[0])


async def decompress(body: bytes, content_encoding: str, bytes_max: int, *, truncates: bool) -> bytes:
    """Return the body without this Content-Encoding. Other tasks may run between its pieces.

    Args:
        truncates: give what can be read of a body that is too long or broken, as for a refusal, whose code counts.

    Raises:
        ConnectionLost: the body is too long, as for a body that was not compressed.
        Malformed: as `decompressor` and `Decompressor.feed`.
    """
    content = bytearray()
    try:
        decompressing = decompressor(content_encoding)
        if decompressing is None:
            return body
        for piece in decompressing.feed(body):
            content += piece
            if len(content) > bytes_max:
                raise ConnectionLost(f"an answer of more than {bytes_max} bytes")
            await checkpoint()
    except (Malformed, ConnectionLost):
        if not truncates:
            raise
    return bytes(content[:bytes_max])
