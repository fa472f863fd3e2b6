"""Answers over aiohttp: those that go on, which are lists and watches, and all of them where a proxy is in the way.

Owns aiohttp's connections, how long they may be silent, and how much of a body or of a line is read. Knows nothing of
credentials.
"""

from __future__ import annotations

import functools
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import aiohttp

from podium.client.http_connection import ERROR_BYTES_MAX, keep_alive, words
from podium.objects.api_errors import ConnectionLost, Malformed, Silent

_READ_BUFFER_BYTES: Final = 256 * 1024
_LINE_BYTES_MAX: Final = 16 * 1024 * 1024
_CONNECT_S_MAX: Final = 10.0
_KEEPALIVE_S: Final = 60.0

NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)


class StreamPool:
    """Connections for streams.

    Attributes: `session`, which makes requests; `users`, how many requests and streams are under way.
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
            # Reading netrc and proxy variables would cost each request two thread hops.
            trust_env=False,
            read_bufsize=_READ_BUFFER_BYTES,
            # Nobody has asked for compression, and a few bytes could stand for gigabytes.
            auto_decompress=False,
        )

    @property
    def is_busy(self) -> bool:
        """Whether anything is under way."""
        return self.users > 0

    async def close(self) -> None:
        """Close all connections."""
        await self.session.close()


class Stream:
    """The body of an answer that goes on, chunk by chunk."""

    def __init__(self, response: aiohttp.ClientResponse, pool: StreamPool, on_silent: Callable[[], None]) -> None:
        """`on_silent` is called when nothing has come for too long."""
        self._response = response
        self._pool: StreamPool | None = pool
        self._on_silent = on_silent
        pool.users += 1
        self._rest = bytearray()

    @property
    def date(self) -> str | None:
        """The server's time, as its header says it."""
        return self._response.headers.get("Date")

    async def read(self) -> bytes:
        """What has arrived, at least one byte; empty at the regular end.

        Raises: `ConnectionLost` when the connection breaks; `Silent` when nothing has come for the stream's idle limit,
        or the end has not come by its deadline.
        """
        try:
            return await read_some(self._response)
        except TimeoutError as error:
            self._on_silent()
            raise Silent(words(error)) from error
        except BROKEN as error:
            raise ConnectionLost(words(error)) from error

    async def read_lines(self) -> list[bytes]:
        """The lines that have arrived whole, at least one; none at the end. A torn last line is dropped.

        Raises: as `read`, and `Malformed` for a line beyond all bounds.
        """
        while chunk := await self.read():
            whole, newline, rest = chunk.rpartition(b"\n")
            if newline:
                lines = (bytes(self._rest) + whole).split(b"\n")
                self._rest = bytearray(rest)
                return lines
            # What goes on is added to, never copied: a line may come byte by byte.
            self._rest += chunk
            if len(self._rest) > _LINE_BYTES_MAX:
                raise Malformed(f"a line of more than {_LINE_BYTES_MAX} bytes")
        return []

    def close(self) -> None:
        """Drop the connection; the server notices by itself."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # A TLS farewell would wait for the answer of a server that may be gone.
            connection.transport.abort()
        self._response.close()
        if self._pool is not None:
            self._pool.users -= 1
            self._pool = None


async def read_some(response: aiohttp.ClientResponse) -> bytes:
    """What has arrived of a body, at least one byte; empty at its end.

    Raises: an error of aiohttp's when the connection breaks. Where it does so after the end of a chunk has woken the
    reader, and before the reader has run, aiohttp's own answer is a RuntimeError.
    """
    try:
        return await response.content.readany()
    except RuntimeError:
        lost = response.content.exception()
        if lost is None:
            raise
        raise lost from None


async def read_body(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    """The body, or as much as is read of one that refuses. Raises: `ConnectionLost` for a longer one that does not."""
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
def timeouts(deadline_s: float, idle_s_max: float | None) -> aiohttp.ClientTimeout:
    """The limits of a request: for everything, and for the longest silence."""
    connect_s = min(_CONNECT_S_MAX, deadline_s)
    return aiohttp.ClientTimeout(total=deadline_s, sock_connect=connect_s, sock_read=idle_s_max)


def _kept_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """As `keep_alive`, for aiohttp."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    keep_alive(made)
    return made
