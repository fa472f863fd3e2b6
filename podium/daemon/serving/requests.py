"""What a server of endpoints is told of each request: when it is through, and what was no request at all.

Anybody may send anything: it is counted and named in a debug line, and none of its bytes get into the log.
"""

from __future__ import annotations

import logging
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from podium.lib.inbound import InboundConnections
from podium.telemetry import Metrics, get_logger

log = get_logger("serving")


def mark_begin(connections: InboundConnections) -> Middleware:
    """A middleware, to be run before all others, by which connections know of requests under way."""

    @web.middleware
    async def begin(request: web.Request, handler: Handler) -> web.StreamResponse:
        connections.begin(request.protocol)
        return await handler(request)

    return begin


def mark_end(connections: InboundConnections) -> type[AbstractAccessLogger]:
    """An access log by which connections know that the answer to a request has been read."""

    class AccessLog(AbstractAccessLogger):
        def log(self, request: web.BaseRequest, response: web.StreamResponse, time: float) -> None:
            connections.end(request.protocol)
            log.debug(
                "Request",
                remote=request.remote,
                verb=request.method,
                path=request.path,
                status=response.status,
                seconds=round(time, 6),
            )

    return AccessLog


class RequestErrors(logging.Logger):
    """What aiohttp complains to."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__("podium.serving")
        self._metrics = metrics

    def exception(self, msg: object, *args: object, exc_info: Any = True, **extra: Any) -> None:
        """A request could not be read, or its handler has failed, which is a mistake of ours."""
        del msg, extra
        if isinstance(exc_info, HttpProcessingError):
            self._count_malformed(exc_info, *args)
        else:
            log.error("A request could not be answered", remote=args[0] if args else None, exc_info=exc_info)

    def debug(self, msg: object, *args: object, exc_info: Any = None, **extra: Any) -> None:
        """A request could not be read."""
        del msg, extra
        if isinstance(exc_info, HttpProcessingError):
            self._count_malformed(exc_info, *args)

    def _count_malformed(self, error: HttpProcessingError, *args: object) -> None:
        self._metrics.count_malformed_request()
        # Its text quotes the request.
        log.debug("Malformed request", remote=args[0] if args else None, error=type(error).__name__)
