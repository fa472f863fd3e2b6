"""A pool of keep-alive connections to one server.

Owns which request uses which connection. Knows nothing of Kubernetes. Never sends a request twice, except a read on a
connection that the server was just closing.

Podium has its own client because each pod costs two writes and aiohttp's client is expensive: on one machine, over TLS
with 32 in flight, 85 us of CPU for a POST against 20 us here (asyncio's loop: 105 against 30). aiohttp's client is
still used through proxies and for watches.
"""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

import anyio

from podium.client.deadlines import Deadlines
from podium.client.http_connection import Answer, Broken, Connection, keep_alive, words
from podium.objects.api_errors import NoResponse, NotLeading, PoolExhausted, Unreachable

_CONNECT_S_MAX: Final = 10.0
_KEEPALIVE_S: Final = 60.0

NOT_LEADING: Final = "this process does not lead, or not any more"


class ConnectionPool:
    """At most `connections_max` connections to the server of a URL. Requests wait for a free one in order of arrival.

    Args:
        base_url: http or https; its path is prepended to those of the requests.
        tls: for https.
        server_name: the name in the server's certificate, if it is not the URL's.
        headers: of every request, besides Host, Content-Length and those that `request` is given.
        may_write: called when a write has its connection, right before it is sent.

    Raises: `Unreachable` if a request was certainly not sent, `ConnectionLost` if it may have been, `NotLeading` if it
    must
            not be.
    """

    def __init__(
        self,
        base_url: str,
        tls: ssl.SSLContext | None,
        *,
        server_name: str | None,
        connections_max: int,
        headers: dict[str, str],
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        url = urllib.parse.urlsplit(base_url)
        assert url.hostname is not None, "a base URL has a host"
        self._base_url = base_url
        self._host = url.hostname
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = tls if url.scheme == "https" else None
        self._server_name = (server_name or url.hostname) if self._tls is not None else None
        self._path = url.path.rstrip("/").encode()
        self._fixed = _lines({"Host": url.netloc.rpartition("@")[2], **headers})
        self._heads: dict[tuple[str | None, str | None], bytes] = {}
        self._connections_max = connections_max
        self._places = anyio.Semaphore(connections_max)
        self._idle: deque[Connection] = deque()
        self._busy: Deadlines[Connection] = Deadlines(Connection.give_up)
        self._lingering: deque[Connection] = deque()
        self._is_retired = False
        self._may_write = may_write

    async def request(
        self,
        method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
        path: str,
        body: bytes | None,
        *,
        content_type: str | None,
        authorization: str | None,
        deadline_s: float,
        answer_bytes_max: int,
    ) -> Answer:
        """Make one request.

        Args:
            path: percent-encoded, with the query.
            deadline_s: seconds for everything, including the wait for a connection.
            answer_bytes_max: a longer answer is an error; the body of a failure is truncated instead.
        """
        loop, is_write = asyncio.get_running_loop(), method != "GET"
        now_s = loop.time()
        ends_s = now_s + deadline_s
        message = self._message(method, path, body, content_type, authorization)
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            await self._wait_for_place(ends_s)
        try:
            connection = self._reuse(now_s)
            while True:
                if connection is None:
                    connection = await self._connect(ends_s)
                # No await between this and the sending.
                if is_write and self._may_write is not None and not self._may_write():
                    self._put_back(connection, loop.time())
                    raise NotLeading(NOT_LEADING)
                self._busy.start(connection, ends_s)
                try:
                    answer = await connection.send(message, answer_bytes_max, lingers=is_write)
                except BaseException as error:
                    self._abandon(connection)
                    if isinstance(error, NoResponse):
                        # What broke this connection may have broken all connections that have not been used since.
                        self.distrust_idle(now_s)
                    if is_write or not isinstance(error, Broken) or not error.is_untouched:
                        raise
                    connection = None
                else:
                    self._busy.end(connection)
                    self._put_back(connection, loop.time())
                    return answer
        finally:
            self._places.release()

    @property
    def idle(self) -> int:
        """Return how many connections are open and idle."""
        return sum(connection.is_open for connection in self._idle)

    @property
    def is_busy(self) -> bool:
        """Return whether a request is under way."""
        return bool(self._busy)

    def distrust_idle(self, since_s: float) -> None:
        """Drop the connections that have received nothing since that time of the loop's clock."""
        while self._idle and self._idle[0].idle_since_s <= since_s:
            self._idle.popleft().abort()

    def retire(self) -> None:
        """Close each connection after its current request."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().abort()

    async def close(self) -> None:
        """Drop all connections; requests still under way fail."""
        self.retire()
        for connection in (*self._busy, *self._lingering):
            connection.abort()

    # ------------------------------------------------------------ one request

    def _abandon(self, connection: Connection) -> None:
        """Drop the connection of a request that has failed or was cancelled.

        The late answer would be taken for that of the next request.
        """
        self._busy.end(connection)
        if connection.is_lingering:
            self._let_linger(connection)
        else:
            connection.abort()

    def _let_linger(self, connection: Connection) -> None:
        """Keep the connection of a caller that gave up open for the late answer.

        If there are too many, drop the oldest.
        """
        self._lingering.append(connection)
        while len(self._lingering) > self._connections_max or not self._lingering[0].is_lingering:
            self._lingering.popleft().abort()

    def _put_back(self, connection: Connection, now_s: float) -> None:
        if connection.is_open and not self._is_retired:
            connection.idle_since_s = now_s
            self._idle.append(connection)
        else:
            connection.abort()

    def _message(
        self, method: str, path: str, body: bytes | None, content_type: str | None, authorization: str | None
    ) -> bytes:
        assert path.isprintable(), "a path is percent-encoded"
        assert " " not in path, "a path is percent-encoded"
        head = self._heads.get((content_type, authorization))
        if head is None:
            head = self._remember_head(content_type, authorization)
        if body is None:
            return b"%s %s%s%s\r\n" % (method.encode(), self._path, path.encode(), head)
        length = len(body)
        return b"%s %s%s%sContent-Length: %d\r\n\r\n%s" % (
            method.encode(), self._path, path.encode(), head, length, body,
        )  # fmt: skip

    def _remember_head(self, content_type: str | None, authorization: str | None) -> bytes:
        """Return the header lines between path and length, cached by what varies: content type and token."""
        if len(self._heads) > 16:
            self._heads.clear()
        varying = {"Content-Type": content_type, "Authorization": authorization}
        lines = _lines({name: value for name, value in varying.items() if value is not None})
        head = self._heads[content_type, authorization] = b" HTTP/1.1\r\n" + self._fixed + lines
        return head

    # ------------------------------------------------------------ connections

    def _reuse(self, now_s: float) -> Connection | None:
        """Return the most recently used connection, so that a busy time's surplus becomes idle and is closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now_s - connection.idle_since_s < _KEEPALIVE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self, ends_s: float) -> Connection:
        """Return a new connection."""
        loop = asyncio.get_running_loop()
        try:
            with anyio.fail_after(min(_CONNECT_S_MAX, ends_s - loop.time())):
                transport, connection = await loop.create_connection(
                    Connection, self._host, self._port, ssl=self._tls, server_hostname=self._server_name
                )
        except TimeoutError as error:
            raise Unreachable(f"{self._base_url}: no connection in time") from error
        except OSError as error:
            raise Unreachable(f"{self._base_url}: {words(error)}") from error
        keep_alive(transport.get_extra_info("socket"))
        return connection

    async def _wait_for_place(self, ends_s: float) -> None:
        try:
            with anyio.fail_after(ends_s - asyncio.get_running_loop().time()):
                await self._places.acquire()
        except TimeoutError as error:
            raise PoolExhausted(f"{self._base_url}: no connection became free in time") from error


def _lines(headers: dict[str, str]) -> bytes:
    """Return the header lines. Raises: ValueError for a value with a control character, which could inject a line."""
    for name, value in headers.items():
        if not value.isprintable():
            raise ValueError(f"the header {name} would hold a control character")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
