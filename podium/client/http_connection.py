"""One connection over HTTP/1.1, and one request at a time on it.

Owns the bytes of an answer: where it ends, how long it may be, how long it is waited for. Never sends anything twice.

Parsing is httptools'. Not done: redirects, compression, pipelining, informational answers other than skipping them.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final, NamedTuple, cast

import httptools

from podium.objects.api_errors import ConnectionLost, Silent

_LINGER_S: Final = 60.0
"""API servers end a request that takes longer than a minute."""
FLOW_SCHEMA: Final = b"x-kubernetes-pf-flowschema-uid"
_FLOW_SCHEMA_LENGTH: Final = len(FLOW_SCHEMA)
_HEAD_BYTES_MAX: Final = 256 * 1024
ERROR_BYTES_MAX: Final = 256 * 1024
"""As much of a refusal's body is read, and the rest is left: the code says what matters."""
_REFUSED: Final = 400
_NO_ANSWER: Final = "no answer in time"
_CLOSED: Final = "the server closed the connection before it had answered"


class Answer(NamedTuple):
    """What the server said. `retry_after` is that header's text; `has_flow_schema` is for `from_response`."""

    status: int
    body: bytes
    retry_after: str | None
    has_flow_schema: bool = False


class Broken(ConnectionLost):
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
            answer.set_exception(Broken(words, is_untouched=self._served > 0 and not self._is_begun))

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


def keep_alive(made: socket.socket) -> None:
    """Have the kernel find out that the other host is gone, about a minute after it went."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def words(error: BaseException) -> str:
    """The error in words; many have none of their own."""
    if isinstance(error, TimeoutError):
        return str(error) or _NO_ANSWER
    return str(error) or type(error).__name__
