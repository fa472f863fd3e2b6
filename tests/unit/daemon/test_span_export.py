from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from podium.daemon.span_export import SPANS_WAITING_MAX, SpanExport
from podium.telemetry.spans import Span
from tests.integration.client.waiting import eventually

pytestmark = pytest.mark.anyio


class Collector:
    """Takes spans in the sender's thread, or does not."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.failure: str | None = None
        self.is_closed = False
        self.threads: set[int] = set()

    def send(self, roots: list[Span]) -> str | None:
        self.threads.add(threading.get_ident())
        if self.failure is None:
            self.taken += [span.name for span in roots]
        return self.failure

    def close(self) -> None:
        self.is_closed = True


def span(name: str, children: int = 0) -> Span:
    return Span(name, 0, 1, {}, [Span("child", 0, 1, {})] * children)


async def until(export: SpanExport, **counts: int) -> None:
    await eventually(lambda: export.counts() == {"exported": 0, "dropped": 0, **counts})


async def test_spans_are_sent_from_another_thread_and_counted_with_their_children() -> None:
    collector = Collector()
    export = SpanExport(collector, "collector")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(export.run)
        export.add(span("a", children=600))
        export.add(span("b", children=1))
        await until(export, exported=603)
        tasks.cancel_scope.cancel()
    assert collector.taken == ["a", "b"]
    assert threading.get_ident() not in collector.threads
    assert collector.is_closed


async def test_too_many_spans_are_dropped_and_counted() -> None:
    export = SpanExport(Collector(), "collector")
    export.add(span("a", children=SPANS_WAITING_MAX - 1))
    export.add(span("b", children=9))
    assert export.counts() == {"exported": 0, "dropped": 10}


async def test_a_collector_that_is_away_costs_its_spans_and_is_told_once() -> None:
    collector = Collector()
    export = SpanExport(collector, "collector:4318")
    collector.failure = "connection refused"
    with capture_logs() as logs:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(export.run)
            for number in (1, 2):
                export.add(span("a", children=511))
                await until(export, dropped=512 * number)
            collector.failure = None
            export.add(span("b", children=511))
            await until(export, dropped=1024, exported=512)
            tasks.cancel_scope.cancel()
    warnings: list[dict[str, Any]] = [
        {key: entry[key] for key in ("event", "log_level", "collector")} for entry in logs
    ]
    assert warnings == [
        {"event": "Spans could not be exported and are dropped", "log_level": "warning", "collector": "collector:4318"},
        {"event": "The collector takes spans again", "log_level": "info", "collector": "collector:4318"},
    ]
    assert logs[0]["error"] == "connection refused"


async def test_what_waits_at_the_end_is_still_sent() -> None:
    collector = Collector()
    export = SpanExport(collector, "collector")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(export.run)
        await anyio.lowlevel.checkpoint()
        export.add(span("last"))
        tasks.cancel_scope.cancel()
    assert collector.taken == ["last"]
