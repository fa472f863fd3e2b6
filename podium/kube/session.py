"""Requests to the API server over HTTP.

Owns the connections and the deadlines, and turns every way a request can fail into an `ApiError`.
Never interprets an object and never retries, except once after a 401 when the credentials could be renewed: a refused
request has certainly done nothing.
"""

from __future__ import annotations

import functools
import socket
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
import anyio
import yarl

import podium
from podium.kube.api_errors import (
    ConnectionLost,
    Malformed,
    OutcomeUnknown,
    Unauthorized,
    Unreachable,
    from_response,
)
from podium.kube.credentials import Credentials

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_CONNECTIONS_MAX = 32
_READ_BUFFER_BYTES = 2 * 1024 * 1024
_LINE_BYTES_MAX = 16 * 1024 * 1024
_CONNECT_S_MAX = 10.0
_KEEPALIVE_S = 60.0
_CLOSE_S_MAX = 2.0
_DEADLINE_S = 30.0

_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class Stream:
    """The body of an answer that goes on, chunk by chunk."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._rest = b""

    async def read(self) -> bytes:
        """What has arrived, at least one byte; empty at the regular end.

        Raises: `ConnectionLost` when the connection breaks or nothing has come for the stream's idle limit.
        """
        try:
            return await self._response.content.readany()
        except _BROKEN as error:
            raise ConnectionLost(_words(error)) from error

    async def read_lines(self) -> list[bytes]:
        """The lines that have arrived whole, at least one; none at the end. A torn last line is dropped.

        Raises: as `read`, and `Malformed` for a line beyond all bounds.
        """
        while chunk := await self.read():
            lines = (self._rest + chunk).split(b"\n")
            self._rest = lines.pop()
            if lines:
                return lines
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


class ApiSession:
    """Connections to one API server: a pool for requests, and one connection for each watch.

    Used as an asynchronous context manager, on the loop that makes the requests.
    Cost: 65-100 us of CPU for a POST, most of it aiohttp's.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections_max: int = _CONNECTIONS_MAX,
        user_agent: str = f"podium/{podium.__version__}",
    ) -> None:
        self._credentials = credentials
        self._connections_max = connections_max
        self._headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": user_agent}
        self._fixed: dict[str, Any] = {"allow_redirects": False}
        if credentials.proxy is not None:
            self._fixed["proxy"] = credentials.proxy
        if credentials.server_name is not None:
            self._fixed["server_hostname"] = credentials.server_name
        self._generation = credentials.generation
        self._requests: aiohttp.ClientSession
        self._watches: aiohttp.ClientSession
        self._retired: list[aiohttp.ClientSession] = []

    async def __aenter__(self) -> Self:
        """Make the pools; nothing is connected yet."""
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; requests still under way fail."""
        with anyio.move_on_after(_CLOSE_S_MAX, shield=True):
            for session in (*self._retired, self._requests, self._watches):
                await session.close()

    async def post(self, path: str, body: bytes) -> bytes:
        """POST JSON and return the answer's body; see `request`."""
        return await self.request("POST", path, body)

    async def request(
        self,
        method: Method,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        deadline_s: float = _DEADLINE_S,
    ) -> bytes:
        """Make one request and return the body of a 2xx answer.

        Args:
            path: absolute and percent-encoded, with the query.
            deadline_s: for everything, waiting for a connection included.

        Raises: an `ApiError`. For a write that broke, `OutcomeUnknown`; for a read, `ConnectionLost`; `Unreachable`
        if the request certainly was not sent.
        """
        timeout = _timeout(deadline_s, None)
        authorization = await self._credentials.authorization()
        try:
            return await self._exchange(method, path, body, content_type, timeout, authorization)
        except Unauthorized:
            if not await self._renew(authorization):
                raise
        authorization = await self._credentials.authorization()
        return await self._exchange(method, path, body, content_type, timeout, authorization)

    async def stream(self, path: str, *, deadline_s: float, idle_s_max: float) -> Stream:
        """GET an answer that goes on; the caller closes it.

        Args:
            deadline_s: for the whole stream.
            idle_s_max: the longest silence before the connection counts as dead.

        Raises: as `request`.
        """
        timeout = _timeout(deadline_s, idle_s_max)
        authorization = await self._credentials.authorization()
        try:
            return await self._start_stream(path, timeout, authorization)
        except Unauthorized:
            if not await self._renew(authorization):
                raise
        return await self._start_stream(path, timeout, await self._credentials.authorization())

    async def _exchange(
        self,
        method: Method,
        path: str,
        body: bytes | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
        authorization: str | None,
    ) -> bytes:
        headers = {} if body is None else {"Content-Type": content_type}
        if authorization is not None:
            headers["Authorization"] = authorization
        url = yarl.URL(self._credentials.base_url + path, encoded=True)
        try:
            response = await self._requests.request(
                method, url, data=body, headers=headers, timeout=timeout, **self._fixed
            )
            answer = await response.read()
        except _NOT_SENT as error:
            raise Unreachable(f"{self._credentials.base_url}: {_words(error)}") from error
        except _BROKEN as error:
            failure = ConnectionLost if method == "GET" else OutcomeUnknown
            raise failure(_words(error)) from error
        if response.status >= 300:
            raise from_response(response.status, answer, response.headers.get("Retry-After"))
        return answer

    async def _start_stream(self, path: str, timeout: aiohttp.ClientTimeout, authorization: str | None) -> Stream:
        headers = {} if authorization is None else {"Authorization": authorization}
        url = yarl.URL(self._credentials.base_url + path, encoded=True)
        try:
            response = await self._watches.request("GET", url, headers=headers, timeout=timeout, **self._fixed)
            if response.status < 300:
                return Stream(response)
            answer = await response.read()
        except _NOT_SENT as error:
            raise Unreachable(f"{self._credentials.base_url}: {_words(error)}") from error
        except _BROKEN as error:
            raise ConnectionLost(_words(error)) from error
        raise from_response(response.status, answer, response.headers.get("Retry-After"))

    async def _renew(self, rejected: str | None) -> bool:
        """Whether there are other credentials now than those just rejected."""
        changed = await self._credentials.renew(rejected)
        if self._credentials.generation != self._generation:
            # A client certificate belongs to its connection: requests have to move to new ones. Those under way end
            # on the old ones.
            self._generation = self._credentials.generation
            self._retired += (self._requests, self._watches)
            self._open()
            return True
        return changed

    def _open(self) -> None:
        self._requests = self._pool(self._connections_max)
        self._watches = self._pool(0)

    def _pool(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=limit,
            ssl=self._credentials.ssl if self._credentials.ssl is not None else True,
            keepalive_timeout=_KEEPALIVE_S,
            socket_factory=_kept_alive_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Reading netrc and proxy variables would cost each request two thread hops.
            trust_env=False,
            read_bufsize=_READ_BUFFER_BYTES,
        )


@functools.lru_cache(maxsize=64)
def _timeout(deadline_s: float, idle_s_max: float | None) -> aiohttp.ClientTimeout:
    connect_s = min(_CONNECT_S_MAX, deadline_s)
    return aiohttp.ClientTimeout(total=deadline_s, sock_connect=connect_s, sock_read=idle_s_max)


def _kept_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket whose kernel finds out that the other host is gone, about a minute after it went."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _words(error: BaseException) -> str:
    """The error in words; many of aiohttp's have none of their own."""
    if isinstance(error, TimeoutError):
        return str(error) or "no answer in time"
    return str(error) or type(error).__name__
