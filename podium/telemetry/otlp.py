"""Sends spans to a collector by OTLP over HTTP. Importing this module needs the extra `[otel]`.

It blocks while it sends, for `SEND_S_MAX` at most: callers use a thread. OpenTelemetry's environment variables apply,
such as OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE and OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Self

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Span as OpenTelemetrySpan
from opentelemetry.trace import Status, StatusCode, set_span_in_context

import podium
from podium.telemetry.spans import Span

SEND_S_MAX: Final = 3.0
_LIBRARY: Final = logging.getLogger("opentelemetry")


class SpanSender:
    """Makes OpenTelemetry's spans from podium's, and has them exported.

    Raises nothing: `send` returns what went wrong.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._finished = _Finished()
        resource = Resource.create({"service.name": "podium", "service.version": podium.__version__})
        # Which attempts are sampled was decided when they began.
        provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(self._finished)
        self._tracer = provider.get_tracer("podium", podium.__version__)

    def send(self, roots: Iterable[Span]) -> str | None:
        """Send these spans, each with what is below it, as a trace of its own, and return why that failed, or None."""
        with _Complaints() as complaints:
            try:
                for root in roots:
                    self._convert(root, None)
                if self._exporter.export(self._finished.take()) is SpanExportResult.SUCCESS:
                    return None
            except Exception as error:  # noqa: BLE001 - whatever the libraries raise, only these spans are lost
                return f"{type(error).__name__}: {error}"
        return complaints.first or "the exporter does not say why"

    def close(self) -> None:
        """End a retry that is under way in another thread."""
        self._exporter.shutdown()

    def _convert(self, span: Span, parent: OpenTelemetrySpan | None) -> None:
        context = None if parent is None else set_span_in_context(parent)
        telemetry_span = self._tracer.start_span(
            span.name, context, attributes=span.attributes, start_time=span.started_ns
        )
        if span.failure is not None:
            telemetry_span.set_status(Status(StatusCode.ERROR, span.failure))
        for child in span.children:
            self._convert(child, telemetry_span)
        telemetry_span.end(span.ended_ns)


def sender_to(endpoint: str) -> SpanSender:
    """Return a sender to the collector at this URL, which includes the path."""
    return SpanSender(OTLPSpanExporter(endpoint=endpoint, timeout=SEND_S_MAX))


class _Finished(SpanProcessor):
    """Collects the spans that have ended."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


class _Complaints(logging.Handler):
    """Keeps the first thing that the library logs, in place of logging it."""

    first = ""

    def __enter__(self) -> Self:
        _LIBRARY.addHandler(self)
        _LIBRARY.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        _LIBRARY.removeHandler(self)
        _LIBRARY.propagate = True

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()
