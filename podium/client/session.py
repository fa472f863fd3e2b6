"""Requests to the API server over HTTP.

Owns authentication and deadlines, and turns every failure of a request into an `ApiError`. Never interprets an object
and never retries, except once after a 401 if the credentials could be renewed, and once after a failed TLS handshake if
the certificates have changed: such a request certainly had no effect.

Requests use `connections.ConnectionPool`. Streams (lists and watches) and all requests through a proxy use aiohttp.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import aiohttp
import anyio
import yarl

import podium
from podium.client.connections import NOT_LEADING, ConnectionPool
from podium.client.content_coding import decompress
from podium.client.credentials import Credentials
from podium.client.http_connection import ERROR_BYTES_MAX, FLOW_SCHEMA, Answer, words
from podium.client.observer import RequestObserver
from podium.client.outage import Outage
from podium.client.requests import JSON, Method
from podium.client.streams import (
    BROKEN,
    NOT_SENT,
    Stream,
    StreamPool,
    connect_timeout,
    content_encoding,
    read_body,
    timeouts,
)
from podium.objects.api_errors import (
    ACCEPTED,
    ApiError,
    ConnectionLost,
    NoResponse,
    NotLeading,
    OutcomeUnknown,
    PoolExhausted,
    Unauthorized,
    Unreachable,
    from_response,
)

T = TypeVar("T")

_CONNECTIONS_MAX = 32
_ANSWER_BYTES_MAX = 1024 * 1024
_OBJECT_BYTES_MAX = 4 * 1024 * 1024
_CLOSE_S_MAX = 2.0
# Pools of two earlier sets of certificates: requests on older ones have had enough time.
_RETIRED_MAX = 4
_DEADLINE_S = 30.0
_SURELY_ALIVE_S = 10.0
"""How long after its last answer a connection counts as alive when another one has gone silent."""


_UNOBSERVED: Final = RequestObserver()


class ApiSession:
    """Connections to one API server: a pool for requests, and one connection for each stream.

    Args:
        may_write: called right before each write is sent (through a proxy: before it gets its connection).
        outage: is informed when the server is unreachable or rejects the credentials, and when it answers again.

    Used as an asynchronous context manager, on the loop that makes the requests.
    Cost: about 25 us of CPU for a POST.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections_max: int = _CONNECTIONS_MAX,
        observer: RequestObserver = _UNOBSERVED,
        may_write: Callable[[], bool] | None = None,
        outage: Outage | None = None,
    ) -> None:
        self._credentials = credentials
        self._connections_max = connections_max
        self._headers: dict[str, str]
        self._fixed: dict[str, Any]
        self._generation = credentials.generation
        self._observer = observer
        self._may_write = may_write
        self._outage = outage
        self._direct: ConnectionPool
        self._streams: StreamPool
        self._retired: list[ConnectionPool | StreamPool] = []

    async def __aenter__(self) -> Self:
        """Create the pools. No connection is made yet."""
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
            for connections in (*self._retired, self._direct, self._streams):
                await connections.close()

    async def post(self, path: str, body: bytes) -> bytes:
        """Send JSON with POST and return the answer's body; see `request`."""
        return await self.request("POST", path, body)

    async def request(
        self,
        method: Method,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = JSON,
        deadline_s: float = _DEADLINE_S,
        answer_bytes_max: int | None = None,
    ) -> bytes:
        """Make one request and return the body of a successful answer; `client.answers` checks its content.

        Args:
            path: absolute and percent-encoded, with the query.
            deadline_s: for everything, including the wait for a connection.
            answer_bytes_max: by default the maximum size of one object, or of the answer to a POST.

        Raises: an `ApiError`. For a write that broke, `OutcomeUnknown`; for a read, `ConnectionLost`; `Unreachable`
        if the request certainly was not sent; `NotLeading` for a write that is not allowed.
        """
        if answer_bytes_max is None:
            answer_bytes_max = _ANSWER_BYTES_MAX if method == "POST" else _OBJECT_BYTES_MAX
        request = method, path, body, content_type, deadline_s, answer_bytes_max
        credentials = self._credentials
        # Nearly always: two coroutines less for each request.
        is_current = credentials.generation == self._generation and not credentials.is_recheck_due()
        authorization = credentials.header if is_current else await self._authorization()
        try:
            return await self._exchange(*request, authorization)
        except (Unauthorized, Unreachable) as error:
            await self._mend(error, authorization)
        return await self._exchange(*request, await self._authorization())

    async def stream(self, path: str, *, deadline_s: float, idle_s_max: float) -> Stream:
        """Request a streamed answer with GET. The caller closes the stream.

        Args:
            deadline_s: for the whole stream.
            idle_s_max: the longest silence before the connection counts as dead.

        Raises: as `request`.
        """
        await self._close_ended()
        authorization = await self._authorization()
        try:
            return await self._start_stream(path, deadline_s, idle_s_max, authorization)
        except (Unauthorized, Unreachable) as error:
            await self._mend(error, authorization)
        return await self._start_stream(path, deadline_s, idle_s_max, await self._authorization())

    async def websocket(self, path: str, protocol: str, *, deadline_s: float) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket. The caller closes it.

        Raises: as `request`; the text of a refusal is not known.
        """
        authorization = await self._authorization()
        headers = {} if authorization is None else {"Authorization": authorization}
        options = {name: value for name, value in self._fixed.items() if name != "allow_redirects"}
        with self._sending() as pool:
            try:
                with anyio.fail_after(deadline_s):
                    opened: aiohttp.ClientWebSocketResponse = await pool.session.ws_connect(
                        self._url(path), protocols=(protocol,), headers=headers, **options
                    )
                    return opened
            except aiohttp.WSServerHandshakeError as error:
                raise from_response(error.status, b"", None) from error

    async def _mend(self, error: Unauthorized | Unreachable, authorization: str | None) -> None:
        """Renew the credentials after a 401 or a failed TLS handshake, so that the request can be retried.

        Raises: the error, if there are no other credentials.
        """
        if isinstance(error, Unauthorized):
            is_mended = await self._credentials.renew(authorization)
        else:
            is_mended = self._is_mended(error)
        if not is_mended:
            self._on_failure(error)
            raise error

    async def _exchange(
        self,
        method: Method,
        path: str,
        body: bytes | None,
        content_type: str,
        deadline_s: float,
        answer_bytes_max: int,
        authorization: str | None,
    ) -> bytes:
        started_s = time.monotonic()
        exchange = self._direct.request if self._credentials.proxy is None else self._by_proxy
        answer: Answer | None = None
        try:
            answer = await exchange(
                method,
                path,
                body,
                content_type=None if body is None else content_type,
                authorization=authorization,
                deadline_s=deadline_s,
                answer_bytes_max=answer_bytes_max,
            )
            content = answer.body
            if answer.content_encoding:
                content = await _decompress(content, answer.status, answer.content_encoding, answer_bytes_max)
        except ConnectionLost as error:
            if method == "GET":
                raise
            raise OutcomeUnknown(str(error)) from error
        finally:
            status, received_bytes = (None, None) if answer is None else (answer.status, len(answer.body))
            seconds = time.monotonic() - started_s
            self._observer.answered(method, status, seconds, len(body or b""), received_bytes)
        if answer.status not in ACCEPTED:
            raise from_response(answer.status, content, answer.retry_after, has_flow_schema=answer.has_flow_schema)
        if self._outage is not None and self._outage.is_on:
            self._outage.over()
        return content

    async def _by_proxy(
        self,
        method: Method,
        path: str,
        body: bytes | None,
        *,
        content_type: str | None,
        authorization: str | None,
        deadline_s: float,
        answer_bytes_max: int,
    ) -> Answer:
        """Send a request through the proxy, as `ConnectionPool.request` does without one."""
        request_headers = {} if content_type is None else {"Content-Type": content_type}
        if authorization is not None:
            request_headers["Authorization"] = authorization
        if method != "GET" and self._may_write is not None and not self._may_write():
            raise NotLeading(NOT_LEADING)
        with self._sending() as pool:
            response = await pool.session.request(
                method,
                self._url(path),
                data=body,
                headers=request_headers,
                timeout=timeouts(deadline_s),
                **self._fixed,
            )
            headers = response.headers
            has_flow_schema = FLOW_SCHEMA.decode() in headers
            body = await read_body(response, answer_bytes_max)
            coding = content_encoding(response)
            return Answer(response.status, body, headers.get("Retry-After"), has_flow_schema, coding)

    async def _start_stream(self, path: str, deadline_s: float, idle_s_max: float, authorization: str | None) -> Stream:
        headers = {} if authorization is None else {"Authorization": authorization}
        ends_s = asyncio.get_running_loop().time() + deadline_s
        status: int | None = None
        try:
            # The stream keeps its own limits.
            with self._sending() as pool, anyio.fail_after(min(deadline_s, idle_s_max)):
                response = await pool.session.request(
                    "GET", self._url(path), headers=headers, timeout=connect_timeout(deadline_s), **self._fixed
                )
                status = response.status
                if status in ACCEPTED:
                    if self._outage is not None and self._outage.is_on:
                        self._outage.over()
                    on_silent = functools.partial(self._distrust, pool)
                    return Stream(response, pool, on_silent, idle_s_max=idle_s_max, ends_s=ends_s)
                answer = await read_body(response, ERROR_BYTES_MAX)
                answer = await _decompress(answer, status, content_encoding(response), ERROR_BYTES_MAX)
        finally:
            self._observer.stream_answered(status)
        raise from_response(response.status, answer, response.headers.get("Retry-After"))

    def _on_failure(self, error: ApiError) -> None:
        if self._outage is not None and not isinstance(error, PoolExhausted):
            self._outage.note_failure(error)

    @contextmanager
    def _sending(self) -> Iterator[StreamPool]:
        """Yield the pool of streams for one request, with its errors translated to `ApiError`."""
        pool = self._streams
        pool.users += 1
        try:
            yield pool
        except NOT_SENT as error:
            raise Unreachable(f"{self._credentials.base_url}: {words(error)}") from error
        except TimeoutError as error:
            self._distrust(pool)
            raise NoResponse(words(error)) from error
        except BROKEN as error:
            raise ConnectionLost(words(error)) from error
        finally:
            pool.users -= 1

    def _distrust(self, pool: StreamPool) -> None:
        """Drop connections that may be dead like one that has gone silent: requests on them would wait in vain.

        A load balancer that silently lost one connection may have lost many.
        """
        self._direct.distrust_idle(asyncio.get_running_loop().time() - _SURELY_ALIVE_S)
        if pool is self._streams:
            self._retired.append(pool)
            self._streams = StreamPool(self._credentials.ssl, self._headers)

    def _url(self, path: str) -> yarl.URL:
        return yarl.URL(self._credentials.base_url + path, encoded=True)

    async def _authorization(self) -> str | None:
        """Return the Authorization header. Also replaces the pools if the server or the TLS set-up has changed."""
        header = await self._credentials.authorization()
        if self._credentials.generation != self._generation:
            # A connection keeps its server, its client certificate and the authority that verified it. Requests in
            # progress finish on the old connections.
            self._generation = self._credentials.generation
            self._direct.retire()
            self._retired += (self._direct, self._streams)
            self._open()
            with anyio.move_on_after(_CLOSE_S_MAX):
                while len(self._retired) > _RETIRED_MAX:
                    await self._retired.pop(0).close()
        return header

    def _is_mended(self, error: Unreachable) -> bool:
        """Return whether TLS has failed, and the files of authorities and certificates have changed."""
        return isinstance(error.__cause__, ssl.SSLError | aiohttp.ClientSSLError) and self._credentials.look_again()

    async def _close_ended(self) -> None:
        """Close retired pools that have no requests in progress."""
        for pool in [pool for pool in self._retired if not pool.is_busy]:
            self._retired.remove(pool)
            await pool.close()

    def _open(self) -> None:
        credentials = self._credentials
        self._headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": f"podium/{podium.__version__}"}
        self._fixed = {"allow_redirects": False}
        if credentials.proxy is not None:
            self._fixed["proxy"] = credentials.proxy
        if credentials.proxy_authorization is not None:
            header = {"Proxy-Authorization": credentials.proxy_authorization}
            if credentials.ssl is None:
                self._headers |= header
            else:
                # Sent to the proxy only, when it opens the connection.
                self._fixed["proxy_headers"] = header
        if credentials.server_name is not None:
            self._fixed["server_hostname"] = credentials.server_name
        self._direct = ConnectionPool(
            credentials.base_url,
            credentials.ssl,
            server_name=credentials.server_name,
            connections_max=self._connections_max,
            headers=self._headers,
            may_write=self._may_write,
        )
        self._streams = StreamPool(credentials.ssl, self._headers)


async def _decompress(body: bytes, status: int, coding: str, bytes_max: int) -> bytes:
    """Decompress an answer with this status; see `content_coding.decompress`."""
    if status in ACCEPTED:
        return await decompress(body, coding, bytes_max, truncates=False)
    return await decompress(body, coding, min(bytes_max, ERROR_BYTES_MAX), truncates=True)
