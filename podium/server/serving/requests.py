"""Logs and counts connections and requests: malformed ones by their kind, without any of their bytes."""

from __future__ import annotations

from aiohttp import web

from podium.lib.endpoints import RequestObserver
from podium.lib.log import get_logger
from podium.telemetry import Metrics

log = get_logger("serving")


class RequestLog(RequestObserver):
    """Logs at debug level what any client can cause."""

    def connection_dropped(self, reason: str) -> None:
        """Log a connection that was closed early."""
        log.debug("Connection dropped", reason=reason)

    def request_malformed(self, remote: object, kind: str) -> None:
        """Log a malformed request. Logged at debug level only: any client can send as many as it likes."""
        log.debug("Malformed request", remote=remote, error=kind)

    def request_failed(self, remote: object, error: object) -> None:
        """Log a handler that raised an exception, which is a bug."""
        log.error("A request could not be answered", remote=remote, exc_info=error)

    def request_answered(self, request: web.BaseRequest, response: web.StreamResponse, seconds: float) -> None:
        """Log the request."""
        log.debug(
            "Request",
            remote=request.remote,
            verb=request.method,
            path=request.path,
            status=response.status,
            seconds=round(seconds, 6),
        )


class CountingRequestLog(RequestLog):
    """Also counts the connections and requests that are not served."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def connection_dropped(self, reason: str) -> None:
        """Count a connection that was closed early."""
        self._metrics.count_dropped_connection(reason)

    def request_malformed(self, remote: object, kind: str) -> None:
        """Count and log a malformed request."""
        self._metrics.count_malformed_request()
        super().request_malformed(remote, kind)
