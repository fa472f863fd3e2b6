"""Requests to the API server, and the lease of the leader."""

from __future__ import annotations

from podium.telemetry.families import (
    Bounds,
    counter,
    gauge,
    histogram,
)

_MESSAGE_BYTES = Bounds(64, 256, 512, *(float(4**power) for power in range(5, 13)))
_REQUEST_S = Bounds(0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestMetrics:
    """Requests to the API server, and the lease of the leader."""

    def __init__(self) -> None:
        self._requests = counter("rest_client_requests_total", "Requests to the API server.", "code", "method", "host")
        self._request_s = histogram(
            "rest_client_request_duration_seconds", "Time of requests to the API server.", _REQUEST_S, "verb", "host"
        )
        self._rate_limit_s = histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the client's rate limit.",
            _REQUEST_S,
            "verb",
            "host",
        )
        self._request_bytes = histogram(
            "rest_client_request_size_bytes", "Size of requests to the API server.", _MESSAGE_BYTES, "verb", "host"
        )
        self._response_bytes = histogram(
            "rest_client_response_size_bytes", "Size of the API server's answers.", _MESSAGE_BYTES, "verb", "host"
        )
        self._request_retries = counter(
            "rest_client_request_retries_total", "Requests that were retried.", "code", "verb", "host"
        )
        self._leader = gauge("leader_election_master_status", "1 while this process leads, otherwise 0.", "name")
        self._slowpath = counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease before they wrote it.", "name"
        )
        super().__init__()

    def count_request(self, method: str, host: str, code: str) -> None:
        """Count a request; `code` is the HTTP status, or `<error>` if there was no answer."""
        self._requests[code, method, host].value += 1.0

    def observe_request(
        self, method: str, host: str, seconds: float, request_bytes: int, response_bytes: int | None
    ) -> None:
        """Record a request other than a watch; sizes are those of the bodies, None if there was no response."""
        key = (method, host)
        self._request_s[key].observe(seconds)
        self._request_bytes[key].observe(request_bytes)
        if response_bytes is not None:
            self._response_bytes[key].observe(response_bytes)

    def count_request_retry(self, method: str, host: str, code: str) -> None:
        """Count a request that is about to be retried after a response with that code."""
        self._request_retries[code, method, host].add()

    def observe_rate_limit(self, method: str, host: str, seconds: float) -> None:
        """Record a request's wait for the client's rate limit."""
        self._rate_limit_s[method, host].observe(seconds)

    def set_leader(self, name: str, *, leads: bool) -> None:
        """Record whether this process holds the lease of that name."""
        self._leader[(name,)].set(int(leads))

    def count_election_slowpath(self, name: str) -> None:
        """Count a renewal for which the leader had to read the lease of that name first."""
        self._slowpath[(name,)].add()
