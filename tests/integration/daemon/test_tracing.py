"""Spans on their way to a collector, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import Mock

import anyio
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podium.config import default_configuration
from podium.daemon import span_export
from podium.daemon.app import App
from podium.daemon.options import Options, TracingOptions
from podium.sandbox import Sandbox
from tests.integration.client.waiting import eventually
from tests.manifests import node, pod

pytestmark = pytest.mark.anyio

SCHEDULER = "default-scheduler"


class Collector:
    """Receives spans as an OpenTelemetry collector does."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.headers: list[str | None] = []

    async def receive(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers.get("x-tenant"))
        for resource_span in ExportTraceServiceRequest.FromString(await request.read()).resource_spans:
            self.services |= {
                attribute.value.string_value
                for attribute in resource_span.resource.attributes
                if attribute.key == "service.name"
            }
            for scope in resource_span.scope_spans:
                self.spans += scope.spans
        return web.Response(body=b"", content_type="application/x-protobuf")

    def spans_named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@asynccontextmanager
async def collecting() -> AsyncIterator[tuple[Collector, str]]:
    collector = Collector()
    server = web.Application()
    server.router.add_post("/v1/traces", collector.receive)
    async with TestServer(server) as running:
        yield collector, str(running.make_url("/v1/traces"))


@asynccontextmanager
async def scheduling(sandbox: Sandbox, endpoint: str) -> AsyncIterator[App]:
    """podium, with a span for each attempt, until the block ends."""
    options = Options(master=sandbox.url, secure_port=0, tracing=TracingOptions(endpoint, 1_000_000))
    app = App(default_configuration(), options)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        app.stop()


async def bind(sandbox: Sandbox, count: int) -> None:
    """Have that many pods scheduled."""
    names = [f"web-{index}" for index in range(count)]
    sandbox.store.create(node("n1", cpu="64", pods="100"))
    for name in names:
        sandbox.store.create(pod(name, scheduler=SCHEDULER))
    await eventually(lambda: all(sandbox.store.get("pods", name, "default")["spec"].get("nodeName") for name in names))


async def test_each_attempt_reaches_the_collector_as_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
    async with (
        Sandbox(kubelets=False) as sandbox,
        collecting() as (collector, endpoint),
        scheduling(sandbox, endpoint) as app,
    ):
        await bind(sandbox, 3)
        await eventually(lambda: len(collector.spans_named("bindingCycle")) == 3)
        await eventually(
            lambda: app.metrics.value("podium_tracing_spans_total", result="exported") == len(collector.spans)
        )
    assert collector.services == {"podium"}
    assert set(collector.headers) == {"blue"}
    roots = collector.spans_named("schedulingCycle")
    assert len({root.trace_id for root in roots}) == 3
    for root in roots:
        below = [span for span in collector.spans if span.parent_span_id == root.span_id]
        assert {"RunPreFilterPlugins", "RunFilterPlugins", "bindingCycle"} <= {span.name for span in below}
        for span in below:
            assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    bindings = {span.span_id for span in collector.spans_named("bindingCycle")}
    assert {span.parent_span_id for span in collector.spans_named("RunBindPlugins")} == bindings


async def test_without_a_collector_pods_are_bound_and_the_loss_is_counted_and_logged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint = f"http://127.0.0.1:{unused_port()}/v1/traces"
    log = Mock()  # In place of the process's logging, which earlier tests may have set up.
    monkeypatch.setattr(span_export, "log", log)
    async with Sandbox(kubelets=False) as sandbox, scheduling(sandbox, endpoint) as app:
        await bind(sandbox, 2)
        await eventually(lambda: app.metrics.value("podium_tracing_spans_total", result="dropped") > 0)
    (warning_call,) = log.warning.call_args_list
    assert warning_call.args == ("Spans could not be exported and are dropped",)
    assert "refused" in warning_call.kwargs["error"]
