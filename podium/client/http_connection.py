"""One connection over HTTP/1.1, and one request at a time on it.

Owns the bytes of an answer: where it ends, and its maximum size. Never sends anything twice, and never reads a clock.

Uses httptools for parsing. Does not support redirects or pipelining, and leaves a compressed body to the caller
(`client.content_coding`); skips informational answers.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final, cast

import httptools
import msgspec

from podium.objects.api_errors import UNDER_WAY_S, ConnectionLost, NoResponse

FLOW_SCHEMA: Final = b"x-kubernetes-pf-flowschema-uid"
_RETRY_AFTER: Final = b"retry-after"
_CODING: Final = b"content-encoding"
_FRAMING: Final = (b"content-length", b"transfer-encoding")
_LENGTHS_READ: Final = frozenset(map(len, (FLOW_SCHEMA, _RETRY_AFTER, _CODING, *_FRAMING)))
_HEAD_BYTES_MAX: Final = 256 * 1024
ERROR_BYTES_MAX: Final = 256 * 1024
"""How much of a failure's body is read. The rest is dropped, because the code says what matters."""
_REFUSED: Final = 400
_NO_ANSWER: Final = "no answer in time"
_CLOSED: Final = "the server closed the connection before it had answered"


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A complete answer.

    `retry_after` and `content_encoding` are the texts of those headers; `has_flow_schema` is for `from_response`.
    """

    status: int
    body: bytes
    retry_after: str | None
    has_flow_schema: bool = False
    content_encoding: str = ""


class Broken(ConnectionLost):
    """A request has failed on its connection. `is_untouched`: the connection was reused and no answer began."""

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
        self._lingering_ends: asyncio.TimerHandle | None = None
        self._served = 0
        self._received_bytes = self._received_bytes_max = 0
        self._start_answer()

    def _start_answer(self) -> None:
        self._body: bytes | bytearray = b""
        self._retry_after: str | None = None
        self._has_flow_schema = False
        self._content_encoding = ""
        self._is_begun = self._is_headed = self._is_framed = False

    def send(self, request: bytes, answer_bytes_max: int, *, lingers: bool) -> asyncio.Future[Answer]:
        """Send a request. The future gets the answer or a `ConnectionLost`, after `give_up` a `NoResponse`.

        Args:
            lingers: stay open for a while after `give_up`, so that a slow server does not cancel the write.
        """
        assert self._answer is None, "only one request at a time"
        self._start_answer()
        self._received_bytes, self._received_bytes_max = 0, answer_bytes_max
        self._lingers = lingers
        answer = self._answer = self._loop.create_future()
        self._transport.write(request)
        return answer

    def give_up(self) -> None:
        """End the request, if it is unanswered: its time is over."""
        if self._answer is None:
            return
        answer = self._end()
        if self._lingers:
            self.is_open, self.is_lingering = False, True
            self._lingering_ends = self._loop.call_later(UNDER_WAY_S, self.abort)
        else:
            self.abort()
        if answer is not None:
            answer.set_exception(NoResponse(_NO_ANSWER))

    def abort(self) -> None:
        """Drop the connection without a TLS shutdown, which would wait for a server that may be gone."""
        self.is_open = self.is_lingering = False
        self._transport.abort()

    # ------------------------------------------------------------ what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the connection that is open now."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Parse more bytes of the answer."""
        # Counts all bytes, because headers, tiny chunks or endless informational answers could fill the memory too.
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
        """Handle the end of the server's side."""
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is under way: the connection is closed; without an exception if it was closed regularly."""
        self.is_open = False
        if self._is_headed and not self._is_framed and exc is None:
            # Neither a length nor chunks: the body ends with the connection.
            self._finish()
        self._break(_CLOSED if exc is None else words(exc))

    # ------------------------------------------------------------ what the parser calls

    def on_message_begin(self) -> None:
        """Begin an answer."""
        if self._answer is None:
            # There was no request: answers on this connection can no longer be assigned to requests.
            self.abort()
        self._is_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header of the answer."""
        # Most headers are of no interest, and their length alone tells.
        if len(name) not in _LENGTHS_READ:
            return
        name = name.lower()
        if name in _FRAMING:
            self._is_framed = True
        elif name == FLOW_SCHEMA:
            self._has_flow_schema = True
        elif name == _RETRY_AFTER:
            self._retry_after = value.decode("latin-1")
        elif name == _CODING:
            self._content_encoding += "," + value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """End the headers: the body begins."""
        self._is_headed = True
        if self._parser.get_status_code() >= _REFUSED:
            self._received_bytes_max = min(self._received_bytes_max, ERROR_BYTES_MAX)

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        if not self._body:
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            self._body = bytearray(self._body) + body

    def on_message_complete(self) -> None:
        """Hand over the complete answer."""
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
            body, coding = bytes(self._body), self._content_encoding.removeprefix(",")
            answer.set_result(Answer(status, body, self._retry_after, self._has_flow_schema, coding))

    def _cut_short(self) -> None:
        """End an answer that is too long. For a failure the part that has arrived is enough."""
        if self._is_headed and self._parser.get_status_code() >= _REFUSED:
            self._finish()
        self._break(f"an answer of more than {self._received_bytes_max} bytes, or headers of {_HEAD_BYTES_MAX}")

    def _break(self, words: str) -> None:
        self.abort()
        answer = self._end()
        if answer is not None:
            answer.set_exception(Broken(words, is_untouched=self._served > 0 and not self._is_begun))

    def _end(self) -> asyncio.Future[Answer] | None:
        """Return the current request, if a caller still waits for its answer."""
        answer, self._answer = self._answer, None
        if self._lingering_ends is not None:
            self._lingering_ends.cancel()
            self._lingering_ends = None
        return None if answer is None or answer.done() else answer


def keep_alive(connection: socket.socket) -> None:
    """Turn on TCP keepalive, so that the kernel detects a lost host within about a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def words(error: BaseException) -> str:
    """Return the error's message, or its type if it has none."""
    if isinstance(error, TimeoutError):
        return str(error) or _NO_ANSWER
    return str(error) or type(error).__name__
