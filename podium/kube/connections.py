"""Connections to one server over HTTP/1.1, kept open from one request to the next.

Owns the bytes of requests and answers and who may use which connection. Knows nothing of Kubernetes; never makes a
request twice, except a read that met a connection the server was just closing.

A client of our own, since each pod costs two writes and aiohttp's client takes most of one: on one machine, over TLS
with 32 in flight, 85 us of CPU for a POST against 20 us here (asyncio's loop: 105 against 30). Parsing is httptools'.
aiohttp's client remains where a proxy is in the way, and for watches.
Not done: redirects, compression, pipelining, informational answers other than skipping them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import urllib.parse
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, cast

import anyio
import httptools

from podium.kube.api_errors import ConnectionLost, Crowded, HeldBack, Silent, Unreachable

_CONNECT_S_MAX: Final = 10.0
_KEEPALIVE_S: Final = 60.0
_LINGER_S: Final = 60.0
"""API servers end a request that takes longer than a minute."""

FLOW_SCHEMA: Final = b"x-kubernetes-pf-flowschema-uid"
_FLOW_SCHEMA_LENGTH: Final = len(FLOW_SCHEMA)
_HEAD_BYTES_MAX: Final = 256 * 1024
ERROR_BYTES_MAX: Final = 256 * 1024
"""As much of a refusal's body is read, and the rest is left: the code says what matters."""
HELD_BACK: Final = "this process does not lead, or not any more"
_REFUSED = 400
_NO_ANSWER = "no answer in time"
_CLOSED = "the server closed the connection before it had answered"


class Answer(NamedTuple):
    """What the server said. `retry_after` is that header's text; `has_flow_schema` is for `from_response`."""

    status: int
    body: bytes
    retry_after: str | None
    has_flow_schema: bool = False


class _Broken(ConnectionLost):
    """A request has failed on its connection; `is_untouched` where that had served before and nothing came back."""

    def __init__(self, message: str, *, is_untouched: bool) -> None:
        super().__init__(message)
        self.is_untouched = is_untouched


class Connection(asyncio.Protocol):
    """One connection, with one request at a time on it."""

    def __init__(self) -> None:
        self.is_open = self.is_lingering = False
        self.idle_since_s = 0.0
        self._lingers = False
        self._loop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._served = 0
        self._received_bytes = self._received_bytes_max = 0
        self._start_answer()

    def _start_answer(self) -> None:
        self._body: bytes | bytearray = b""
        self._retry_after: str | None = None
        self._has_flow_schema = False
        self._is_begun = self._is_headed = self._is_framed = False

    def send(
        self, request: bytes, deadline_s: float, answer_bytes_max: int, *, lingers: bool
    ) -> asyncio.Future[Answer]:
        """Send a request; the answer, or a `ConnectionLost`, comes by the deadline, on the loop's clock.

        Args:
            lingers: stay open for a while after the deadline, so that a server that is slow does not give up.
        """
        assert self._answer is None, "one request at a time"
        self._start_answer()
        self._received_bytes, self._received_bytes_max = 0, answer_bytes_max
        self._lingers = lingers
        answer = self._answer = self._loop.create_future()
        self._timer = self._loop.call_at(deadline_s, self._give_up)
        self._transport.write(request)
        return answer

    def abort(self) -> None:
        """Drop the connection; a TLS farewell would wait for the answer of a server that may be gone."""
        self.is_open = self.is_lingering = False
        self._transport.abort()

    # ------------------------------------------------------------ what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be used."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """More of the answer."""
        # Whatever the answer is made of: headers, chunks of a byte, informational answers without end.
        self._received_bytes += len(data)
        if self._received_bytes > (self._received_bytes_max if self._is_headed else _HEAD_BYTES_MAX):
            self._cut_short()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._break(f"not an HTTP answer: {error}")
        except httptools.HttpParserUpgrade:
            self._break("the server changed the protocol")

    def eof_received(self) -> None:
        """The server will send no more."""
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over; without an exception, in the regular way."""
        self.is_open = False
        if self._is_headed and not self._is_framed and exc is None:
            # Neither a length nor chunks: what has come until the regular end is the body.
            self._finish()
        self._break(_CLOSED if exc is None else words(exc))

    # ------------------------------------------------------------ what the parser calls

    def on_message_begin(self) -> None:
        """An answer begins."""
        if self._answer is None:
            # Nobody has asked: what follows on this connection cannot be told apart any more.
            self.abort()
        self._is_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of it."""
        length = len(name)
        if length == 11 and name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif (length == 14 and name.lower() == b"content-length") or (
            length == 17 and name.lower() == b"transfer-encoding"
        ):
            self._is_framed = True
        elif length == _FLOW_SCHEMA_LENGTH and name.lower() == FLOW_SCHEMA:
            self._has_flow_schema = True

    def on_headers_complete(self) -> None:
        """The body begins."""
        self._is_headed = True
        if self._parser.get_status_code() >= _REFUSED:
            self._received_bytes_max = min(self._received_bytes_max, ERROR_BYTES_MAX)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            self._body = bytearray(self._body) + body

    def on_message_complete(self) -> None:
        """The answer is complete."""
        if self._parser.get_status_code() < 200:
            self._start_answer()
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._finish()

    # ------------------------------------------------------------ the end of a request

    def _finish(self) -> None:
        answer = self._end()
        if answer is not None:
            self._served += 1
            status = self._parser.get_status_code()
            answer.set_result(Answer(status, bytes(self._body), self._retry_after, self._has_flow_schema))

    def _cut_short(self) -> None:
        """End an answer that is longer than any that makes sense; of a refusal, what has come is enough."""
        if self._is_headed and self._parser.get_status_code() >= _REFUSED:
            self._finish()
        self._break(f"an answer of more than {self._received_bytes_max} bytes, or headers of {_HEAD_BYTES_MAX}")

    def _break(self, words: str) -> None:
        self.abort()
        answer = self._end()
        if answer is not None:
            answer.set_exception(_Broken(words, is_untouched=self._served > 0 and not self._is_begun))

    def _give_up(self) -> None:
        answer = self._end()
        if self._lingers:
            self.is_open, self.is_lingering = False, True
            self._timer = self._loop.call_later(_LINGER_S, self.abort)
        else:
            self.abort()
        if answer is not None:
            answer.set_exception(Silent(_NO_ANSWER))

    def _end(self) -> asyncio.Future[Answer] | None:
        """The request that was under way, if anybody still waits for its answer."""
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return None if answer is None or answer.done() else answer


class ConnectionPool:
    """At most `connections_max` connections to the server of a URL; who finds none free waits, first come first served.

    Args:
        base_url: http or https; its path leads those of the requests.
        tls: for https.
        server_name: the name in the server's certificate, where it is not the URL's.
        headers: of every request, besides Host, Content-Length and those that `request` is given.
        may_write: asked when a write has its connection, right before it is sent.

    Raises: `Unreachable` where a request was certainly not sent, `ConnectionLost` where it may have been, `HeldBack`
        where it must not be.
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
        self._places = asyncio.Semaphore(connections_max)
        self._idle: deque[Connection] = deque()
        self._busy: set[Connection] = set()
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
            deadline_s: seconds for everything, waiting for a connection included.
            answer_bytes_max: a longer answer is none, unless it refuses: then it is cut.
        """
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + deadline_s
        message = self._message(method, path, body, content_type, authorization)
        await self._take_place(ends_s)
        try:
            try:
                connection = self._reused() or await self._connected(ends_s)
                # No await between this and the sending.
                if method != "GET" and self._may_write is not None and not self._may_write():
                    self._put_back(connection)
                    raise HeldBack(HELD_BACK)
                return await self._exchange(connection, message, ends_s, answer_bytes_max, lingers=method != "GET")
            except Silent:
                # What has made this connection dead may have happened to all that have not been used since.
                self.distrust_idle(ends_s - deadline_s)
                raise
            except _Broken as error:
                if method != "GET" or not error.is_untouched:
                    raise
            connection = await self._connected(ends_s)
            return await self._exchange(connection, message, ends_s, answer_bytes_max, lingers=False)
        finally:
            self._places.release()

    @property
    def idle(self) -> int:
        """How many connections are open and wait for a request."""
        return sum(connection.is_open for connection in self._idle)

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return bool(self._busy)

    def distrust_idle(self, since_s: float) -> None:
        """Drop the connections that have given no sign of life since that time of the loop's clock."""
        while self._idle and self._idle[0].idle_since_s <= since_s:
            self._idle.popleft().abort()

    def retire(self) -> None:
        """Keep no connection beyond the request that is on it."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().abort()

    async def close(self) -> None:
        """Drop all connections; requests still under way fail."""
        self.retire()
        for connection in (*self._busy, *self._lingering):
            connection.abort()

    # ------------------------------------------------------------ one request

    async def _exchange(
        self, connection: Connection, message: bytes, ends_s: float, answer_bytes_max: int, *, lingers: bool
    ) -> Answer:
        self._busy.add(connection)
        try:
            answer = await connection.send(message, ends_s, answer_bytes_max, lingers=lingers)
        except BaseException:
            # Cancelled ones too: the answer would meet the next request.
            if connection.is_lingering:
                self._let_linger(connection)
            else:
                connection.abort()
            raise
        finally:
            self._busy.discard(connection)
        self._put_back(connection)
        return answer

    def _let_linger(self, connection: Connection) -> None:
        """Leave a connection to itself that nobody waits for any more; as many as may be in use, the oldest go."""
        self._lingering.append(connection)
        while len(self._lingering) > self._connections_max or not self._lingering[0].is_lingering:
            self._lingering.popleft().abort()

    def _put_back(self, connection: Connection) -> None:
        if connection.is_open and not self._is_retired:
            connection.idle_since_s = asyncio.get_running_loop().time()
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
        """What stands between the path and the length: the same for all requests but for few types and a new token."""
        if len(self._heads) > 16:
            self._heads.clear()
        varying = {"Content-Type": content_type, "Authorization": authorization}
        lines = _lines({name: value for name, value in varying.items() if value is not None})
        head = self._heads[content_type, authorization] = b" HTTP/1.1\r\n" + self._fixed + lines
        return head

    # ------------------------------------------------------------ connections

    def _reused(self) -> Connection | None:
        """The connection that was used last, so that those of a busy time can go when it is over."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and asyncio.get_running_loop().time() - connection.idle_since_s < _KEEPALIVE_S:
                return connection
            connection.abort()
        return None

    async def _connected(self, ends_s: float) -> Connection:
        """A new connection."""
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

    async def _take_place(self, ends_s: float) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            with anyio.fail_after(ends_s - asyncio.get_running_loop().time()):
                await self._places.acquire()
        except TimeoutError as error:
            raise Crowded(f"{self._base_url}: no connection became free in time") from error


def keep_alive(made: socket.socket) -> None:
    """Have the kernel find out that the other host is gone, about a minute after it went."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _lines(headers: dict[str, str]) -> bytes:
    """Header lines. Raises: ValueError for a value that would be more than one."""
    for name, value in headers.items():
        if not value.isprintable():
            raise ValueError(f"the header {name} would hold a control character")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


def words(error: BaseException) -> str:
    """The error in words; many have none of their own."""
    if isinstance(error, TimeoutError):
        return str(error) or _NO_ANSWER
    return str(error) or type(error).__name__
