from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import podium
from podium.telemetry.otlp import SpanSender
from podium.telemetry.spans import Span

SECOND = 1_000_000_000
BINDING = Span("bindingCycle", 12 * SECOND, 15 * SECOND, {"podium.attempt": 1}, failure="full")
ROOT = Span("schedulingCycle", 10 * SECOND, 12 * SECOND, {"k8s.pod.name": "web-1"}, [BINDING])


class Fails(SpanExporter):
    """Complains as the library does."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        log = logging.getLogger("opentelemetry.exporter")
        log.warning("Transient error %s", "refused")
        log.error("Failed to export spans")
        if self._error is not None:
            raise self._error
        return SpanExportResult.FAILURE


def test_spans_keep_their_times_attributes_and_parents() -> None:
    exporter = InMemorySpanExporter()
    assert SpanSender(exporter).send([ROOT, BINDING]) is None
    below, root, alone = exporter.get_finished_spans()
    assert (root.name, root.start_time, root.end_time) == ("schedulingCycle", 10 * SECOND, 12 * SECOND)
    assert dict(root.attributes or {}) == {"k8s.pod.name": "web-1"}
    assert root.parent is None
    assert below.parent is not None
    assert below.parent.span_id == root.context.span_id
    assert below.context.trace_id == root.context.trace_id != alone.context.trace_id
    assert (below.status.status_code, below.status.description) == (StatusCode.ERROR, "full")
    assert root.status.status_code is StatusCode.UNSET
    assert root.resource.attributes["service.name"] == "podium"
    assert root.resource.attributes["service.version"] == podium.__version__


def test_spans_are_sent_once() -> None:
    exporter = InMemorySpanExporter()
    sender = SpanSender(exporter)
    sender.send([BINDING])
    sender.send([ROOT])
    assert [span.name for span in exporter.get_finished_spans()] == ["bindingCycle", "bindingCycle", "schedulingCycle"]


def test_why_spans_were_not_taken_is_returned_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert SpanSender(Fails(None)).send([ROOT]) == "Transient error refused"
    assert SpanSender(Fails(ValueError("mistake"))).send([ROOT]) == "ValueError: mistake"
    assert caplog.records == []
