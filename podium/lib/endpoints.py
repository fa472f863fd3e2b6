"""Serves HTTP to untrusted clients: idle connections are closed, and bytes of malformed requests are never logged.

Owns aiohttp's server. Never logs: it reports to an observer.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from podium.lib.inbound import InboundConnections

# Upstream's deadline for the headers of a request; it also limits the wait for the next request here.
IDLE_S_MAX: Final = 32.0
_ANSWER_S_MAX: Final = 120.0
_STOP_S_MAX: Final = 5.0
# Requests may end by themselves within this time; the rest of the limit is for cancelling them.
_DRAIN_S_MAX: Final = 4.0
_UNREAD = "UNKNOWN"


class RequestObserver:
    """Receives reports about connections and requests. Methods must be quick and must not raise.

    Methods do nothing by default: an observer overrides those that it needs.
    """

    def connection_dropped(self, reason: str) -> None:
        """Record a closed connection: it was `idle` for too long, or there were too many (`full`)."""

    def request_malformed(self, remote: object, kind: str) -> None:
        """Record input that is not an HTTP request; `kind` says which rule it breaks."""

    def request_failed(self, remote: object, error: object) -> None:
        """Record a handler's exception."""

    def request_answered(self, request: web.BaseRequest, response: web.StreamResponse, seconds: float) -> None:
        """Record a request whose response has been sent."""


@asynccontextmanager
async def serving(
    app: web.Application,
    listener: socket.socket,
    observer: RequestObserver,
    *,
    connections_max: int,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> AsyncIterator[None]:
    """Serve while the context is open; then close the listener and let running requests end, for at most 5 s.

    Args:
        connections_max: beyond this number, the connections that have been idle longest are closed.
        tls: called for the TLS settings of each connection.
    """
    connections = InboundConnections(
        connections_max, idle_s_max=IDLE_S_MAX, busy_s_max=_ANSWER_S_MAX, on_drop=observer.connection_dropped
    )
    app.middlewares.insert(0, _mark_begin(connections))
    runner = web.AppRunner(
        app,
        access_log_class=_mark_end(connections, observer),
        logger=_RequestErrors(observer),
        keepalive_timeout=IDLE_S_MAX,
        shutdown_timeout=_DRAIN_S_MAX,
        handler_cancellation=True,  # nobody waits for the answer once the client has left
    )
    try:
        await runner.setup()
        assert runner.server is not None, "the runner has been set up"
        async with anyio.create_task_group() as accepting:
            accepting.start_soon(connections.serve, listener, runner.server, tls)
            yield
            accepting.cancel_scope.cancel()
    finally:
        listener.close()
        with anyio.move_on_after(_STOP_S_MAX, shield=True):
            await runner.cleanup()
        with anyio.CancelScope(shield=True):
            # A loop that ends while a connection is still being closed ends with an error.
            await connections.wait_closed()


def _mark_begin(connections: InboundConnections) -> Middleware:
    @web.middleware
    async def begin(request: web.Request, handler: Handler) -> web.StreamResponse:
        connections.begin(request.protocol)
        return await handler(request)

    return begin


def _mark_end(connections: InboundConnections, observer: RequestObserver) -> type[AbstractAccessLogger]:
    """Use an access log: aiohttp calls it after a response has been sent, which a middleware cannot observe."""

    class AccessLog(AbstractAccessLogger):
        def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
            connections.end(request.protocol)
            if request.method != _UNREAD:
                observer.request_answered(request, response, time)

    return AccessLog


class _RequestErrors(logging.Logger):
    """Receives aiohttp's own log records, which would quote requests and show tracebacks of its parser."""

    def __init__(self, observer: RequestObserver) -> None:
        super().__init__("podium.endpoints")
        self._observer = observer

    def exception(self, msg: object, *args: object, exc_info: Any = True, **extra: Any) -> None:
        del msg, extra
        remote = args[0] if args else None
        if isinstance(exc_info, HttpProcessingError):
            self._observer.request_malformed(remote, type(exc_info).__name__)
        else:
            self._observer.request_failed(remote, exc_info)

    def debug(self, msg: object, *args: object, exc_info: Any = None, **extra: Any) -> None:
        del msg, extra
        if isinstance(exc_info, HttpProcessingError):
            self._observer.request_malformed(args[0] if args else None, type(exc_info).__name__)
