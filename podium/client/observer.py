"""Receives what the client reports for metrics. Methods do nothing by default: an observer overrides what it wants."""

from __future__ import annotations


class RequestObserver:
    """Receives every request to the API server. Methods must be quick and must not raise."""

    def answered(
        self, method: str, status: int | None, seconds: float, sent_bytes: int, received_bytes: int | None
    ) -> None:
        """Record a request's answer; without an answer, status and received bytes are None."""

    def stream_answered(self, status: int | None) -> None:
        """Record that a stream has begun, was refused or was not answered."""

    def throttled(self, method: str, seconds: float) -> None:
        """Record how long a write has waited for its turn."""

    def retried(self, method: str, status: int) -> None:
        """Record that a write is retried after that status."""
