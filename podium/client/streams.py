"""Answers over aiohttp: streams (lists and watches), and all answers through a proxy.

Owns aiohttp's connections, their limits for silence, and the maximum size of a body or a line. Knows nothing of
credentials.
"""

from __future__ import annotations

import asyncio
import functools
import math
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiohttp
from anyio.lowlevel import checkpoint

from podium.client.content_coding import decompressor
from podium.client.http_connection import ERROR_BYTES_MAX, keep_alive, words
from podium.objects.api_errors import ConnectionLost, Malformed, NoResponse

_READ_BUFFER_BYTES: Final = 256 * 1024
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_CONNECT_S_MAX: Final = 10.0
_KEEPALIVE_S: Final = 60.0
_SILENT: Final = "Timeout on reading data from socket"

NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)


class StreamPool:
    """Connections for streams.

    Attributes: `session` makes requests; `users` is the number of requests and streams in progress.
    """

    def __init__(self, tls: ssl.SSLContext | None, headers: dict[str, str]) -> None:
        connector = aiohttp.TCPConnector(
            limit=0,
            ssl=tls if tls is not None else True,
            keepalive_timeout=_KEEPALIVE_S,
            socket_factory=_kept_alive_socket,
        )
        self.users = 0
        self.session = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Reading netrc and proxy variables would cost two thread hops per request.
            trust_env=False,
            read_bufsize=_READ_BUFFER_BYTES,
            # Compression was not requested, and a few compressed bytes could expand to gigabytes: `content_coding`
            # decompresses within limits what a proxy has compressed.
            auto_decompress=False,
        )

    @property
    def is_busy(self) -> bool:
        """Return whether a request or stream is in progress."""
        return self.users > 0

    async def close(self) -> None:
        """Close all connections."""
        await self.session.close()


class Stream:
    """The body of a streamed answer, chunk by chunk."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        pool: StreamPool,
        on_silent: Callable[[], None],
        *,
        idle_s_max: float = math.inf,
        ends_s: float = math.inf,
    ) -> None:
        """Read from a response; `on_silent` is called when no data has arrived for too long.

        Args:
            idle_s_max: the longest silence.
            ends_s: the deadline of the whole stream, on the loop's clock.

        Raises: `Malformed` for a Content-Encoding that podium does not read.
        """
        try:
            self._decompressor = decompressor(content_encoding(response))
        except Malformed:
            response.close()
            raise
        self._pieces: Iterator[bytes] = iter(())
        self._response = response
        self._pool: StreamPool | None = pool
        self._on_silent = on_silent
        pool.users += 1
        self._rest = bytearray()
        # One timer that looks now and then: aiohttp would set two anew for each part of a watch.
        self._loop = asyncio.get_running_loop()
        self._idle_s_max, self._ends_s = idle_s_max, ends_s
        self._heard_s, self._read_bytes = self._loop.time(), 0
        self._look_later()

    def _look_later(self) -> None:
        due_s = min(self._heard_s + self._idle_s_max, self._ends_s)
        self._timer = None if math.isinf(due_s) else self._loop.call_at(due_s, self._look, due_s)

    def _look(self, due_s: float) -> None:
        """Fail the reader if the stream was silent for too long, or has not ended in time."""
        content = self._response.content
        if content.total_bytes > self._read_bytes:
            # Not silent: the reader is busy with something else.
            self._heard_s = due_s
        if self._ends_s <= due_s:
            content.set_exception(TimeoutError())
        elif self._heard_s + self._idle_s_max <= due_s:
            content.set_exception(TimeoutError(_SILENT))
        else:
            self._look_later()

    @property
    def date(self) -> str | None:
        """The Date header of the answer: the server's time."""
        return self._response.headers.get("Date")

    async def read(self) -> bytes:
        """Return the bytes that have arrived, at least one; empty at the regular end.

        Raises: `ConnectionLost` when the connection breaks; `NoResponse` when no data has arrived for the stream's idle
        limit, or the stream has not ended by its deadline; `Malformed` for a compressed body that is broken or grows
        too much.
        """
        if self._decompressor is None:
            return await self._read_some()
        while True:
            # A few bytes may hold much, and without this other tasks would have to wait for all of it.
            await checkpoint()
            piece = next(self._pieces, None)
            if piece:
                return piece
            if piece is None:
                chunk = await self._read_some()
                if not chunk:
                    return b""
                self._pieces = self._decompressor.feed(chunk)

    async def _read_some(self) -> bytes:
        try:
            chunk = await read_some(self._response)
            self._heard_s = self._loop.time()
            self._read_bytes += len(chunk)
            return chunk
        except TimeoutError as error:
            self._on_silent()
            raise NoResponse(words(error)) from error
        except BROKEN as error:
            raise ConnectionLost(words(error)) from error

    async def read_lines(self) -> list[bytes]:
        """Return the lines that have arrived whole, at least one; empty at the end. A partial last line is dropped.

        Raises: as `read`, and `Malformed` for a line that is too long.
        """
        # Straight to the bytes, where they need no decompression: each part of a watch is read here.
        read = self._read_some if self._decompressor is None else self.read
        while chunk := await read():
            end = chunk.find(b"\n")
            if end >= 0:
                # `find` is several times as fast as `split`, which looks at each byte by itself.
                lines, start = [bytes(self._rest) + chunk[:end]], end + 1
                while (end := chunk.find(b"\n", start)) >= 0:
                    lines.append(chunk[start:end])
                    start = end + 1
                self._rest = bytearray(chunk[start:])
                return lines
            # The rest is extended in place, never copied: a line may arrive byte by byte.
            self._rest += chunk
            if len(self._rest) > _LINE_BYTES_MAX:
                raise Malformed(f"a line of more than {_LINE_BYTES_MAX} bytes")
        return []

    def close(self) -> None:
        """Drop the connection; the server notices by itself."""
        if self._timer is not None:
            self._timer.cancel()
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # A TLS shutdown would wait for the answer of a server that may be gone.
            connection.transport.abort()
        self._response.close()
        if self._pool is not None:
            self._pool.users -= 1
            self._pool = None


def content_encoding(response: aiohttp.ClientResponse) -> str:
    """Return the text of its Content-Encoding, which may stand in several headers; empty if it has none."""
    return ",".join(response.headers.getall("Content-Encoding", ()))


async def read_some(response: aiohttp.ClientResponse) -> bytes:
    """Return the bytes of a body that have arrived, at least one; empty at its end.

    Raises: an error of aiohttp when the connection breaks. If it breaks after the end of a chunk has woken the reader
    and before the reader has run, aiohttp raises a RuntimeError.
    """
    try:
        return await response.content.readany()
    except RuntimeError:
        error = response.content.exception()
        if error is None:
            raise
        raise error from None


async def read_body(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """Return the body, truncated if it is a failure's. Raises: `ConnectionLost` for another body that is too long."""
    refuses = response.status >= 400
    bytes_max = min(bytes_max, ERROR_BYTES_MAX) if refuses else bytes_max
    body = bytearray()
    while chunk := await read_some(response):
        body += chunk
        if len(body) > bytes_max:
            response.close()
            if refuses:
                break
            raise ConnectionLost(f"an answer of more than {bytes_max} bytes")
    return bytes(body[:bytes_max])


@functools.lru_cache(maxsize=64)
def timeouts(deadline_s: float) -> aiohttp.ClientTimeout:
    """Return aiohttp's limits of a request with one answer."""
    return aiohttp.ClientTimeout(total=deadline_s, sock_connect=min(_CONNECT_S_MAX, deadline_s))


@functools.lru_cache(maxsize=64)
def connect_timeout(deadline_s: float) -> aiohttp.ClientTimeout:
    """Return aiohttp's limit of a streamed request, which has limits of its own from then on."""
    return aiohttp.ClientTimeout(total=None, sock_connect=min(_CONNECT_S_MAX, deadline_s))


def _kept_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket with the options of `keep_alive`, for aiohttp."""
    family, kind, protocol, _, _ = address
    connection = socket.socket(family=family, type=kind, proto=protocol)
    keep_alive(connection)
    return connection
