"""Hands spans to a sender in a thread. A collector that is away costs its spans, which are counted, no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, Protocol

import anyio
import anyio.to_thread

from podium.lib.log import get_logger
from podium.server.wakeup import WakeUp
from podium.telemetry.spans import Span

log = get_logger("tracing")

SPANS_WAITING_MAX: Final = 4096
_BATCH: Final = 512
_SEND_EVERY_S: Final = 1.0
_LAST_SEND_S_MAX: Final = 1.0


class Sender(Protocol):
    """Sends spans; `telemetry.otlp.SpanSender` is one."""

    def send(self, roots: list[Span]) -> str | None:
        """Send these spans, wait for the answer, and return why that failed, None if it did not."""

    def close(self) -> None:
        """Hurry up a `send` that is under way in another thread."""


class SpanExport:
    """A bounded queue of spans, and the task that empties it.

    Args:
        collector: where the spans go, for the log.
    """

    def __init__(self, sender: Sender, collector: str) -> None:
        self._sender = sender
        self._collector = collector
        self._waiting: deque[Span] = deque()
        self._spans_waiting = 0
        self._exported = self._dropped = 0
        self._is_failing = False
        self._wake_up = WakeUp()

    def counts(self) -> Mapping[str, float]:
        """Return the number of exported spans and that of dropped ones."""
        return {"exported": self._exported, "dropped": self._dropped}

    def add(self, root: Span) -> None:
        """Queue the span and all below it; they are dropped if too many wait."""
        size = root.size
        if self._spans_waiting + size > SPANS_WAITING_MAX:
            self._dropped += size
            return
        self._waiting.append(root)
        self._spans_waiting += size
        if self._spans_waiting >= _BATCH:
            self._wake_up.set()

    async def run(self) -> None:
        """Send what waits, every second or as soon as it is much."""
        try:
            while True:
                if self._spans_waiting < _BATCH:
                    await self._wake_up.wait(_SEND_EVERY_S)
                if self._waiting:
                    await self._send()
        finally:
            if self._waiting and not self._is_failing:
                with anyio.move_on_after(_LAST_SEND_S_MAX, shield=True):
                    await self._send()
            self._sender.close()

    async def _send(self) -> None:
        roots, size = [], 0
        while self._waiting and size < _BATCH:
            roots.append(self._waiting.popleft())
            size += roots[-1].size
        self._spans_waiting -= size
        failure = await anyio.to_thread.run_sync(self._sender.send, roots, abandon_on_cancel=True)
        if failure is None:
            self._exported += size
            if self._is_failing:
                log.info("The collector takes spans again", collector=self._collector)
        else:
            self._dropped += size
            if not self._is_failing:
                log.warning("Spans could not be exported and are dropped", collector=self._collector, error=failure)
        self._is_failing = failure is not None
