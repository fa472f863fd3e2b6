"""Receives what the client reports for metrics. Methods do nothing by default: an observer overrides what it wants."""

from __future__ import annotations


class RequestObserver:
    """Receives every request to the API server. Methods must be quick and must not raise."""

    def answered(
        self, method: str, status: int | None, seconds: float, sent_bytes: int, received_bytes: int | None
    ) -> None:
        """A request was answered; without an answer, status and received bytes are None."""

    def stream_answered(self, status: int | None) -> None:
        """A stream has begun, or was refused, or was not answered."""

    def throttled(self, method: str, seconds: float) -> None:
        """A write has waited this long for its turn."""

    def retried(self, method: str, status: int) -> None:
        """A write is retried after that status."""
