"""Metrics sources over HTTP: what is sent to them, and every way in which they fail."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podium.client import metrics_reader
from podium.client.metrics_answers import MetricsError
from podium.client.metrics_reader import MetricsReader
from podium.objects.api_errors import NotFound
from podium.objects.node_metrics import KUBERNETES_METRICS_SERVER, PROMETHEUS, WATCHER, MetricsQuery, MetricsSource
from tests.builders import node
from tests.integration.client.certificates import Authority
from tests.metrics_sources import MetricsStub, metrics_stub, vector, watcher_answer

pytestmark = pytest.mark.anyio

NODES = (node("n1", cpu="4", memory="8Gi"), node("n2"))
AVERAGE, DEVIATION = MetricsQuery("avg", "CPU", "AVG", factor=100.0), MetricsQuery("dev", "CPU", "STD", factor=100.0)


class Api:
    """Stands for the API server's session."""

    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.path = ""

    async def request(self, method: str, path: str, body: bytes | None = None, **limits: Any) -> bytes:
        self.path = path
        if self.body is None:
            raise NotFound("the server could not find the requested resource")
        return self.body


def reader(source: MetricsSource, api: Any = None) -> MetricsReader:
    return MetricsReader(source, api, lambda: NODES, lambda: 1000.5)


def prometheus(stub: MetricsStub, *queries: MetricsQuery, **fields: Any) -> MetricsSource:
    return MetricsSource(PROMETHEUS, stub.url, queries=queries or (AVERAGE, DEVIATION), **fields)


async def test_a_load_watcher_is_read() -> None:
    async with metrics_stub(watched=watcher_answer({"n1": {"CPU": 30, "Storage": 1}, "gone": {"CPU": 1}})) as stub:
        report, problems = await reader(MetricsSource(WATCHER, stub.url)).read()
    assert report.key == f"LoadWatcher {stub.url}"
    assert report.loads("CPU").mean == (30.0,)
    assert (report.window.end, report.fetched_s) == (900, 1000.5)
    assert problems == "no such node: gone"
    assert stub.requests == [("GET", "/watcher", "", "")]


async def test_prometheus_gets_one_query_for_all_nodes() -> None:
    queries = {"avg": vector({"n1:9100": 0.5, "n2:9100": 0.1}), "dev": vector({"n1:9100": 0.05})}
    async with metrics_stub(queries=queries) as stub:
        report, problems = await reader(prometheus(stub, token="secret")).read()
    assert report.loads("CPU").mean == (50.0, 10.0)
    assert report.loads("CPU").deviation == (5.0, 0.0)
    assert (report.window.start, report.window.end, problems) == (100, 1000, "")
    assert stub.requests == [("POST", "/api/v1/query", expr, "Bearer secret") for expr in ("avg", "dev")]


async def test_a_prometheus_that_takes_no_post_is_asked_with_get() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=405) if request.method == "POST" else web.json_response(vector({"n1": 0.5}))

    async with metrics_stub(answer=answer) as stub:
        report, _ = await reader(prometheus(stub, AVERAGE)).read()
    assert report.loads("CPU").mean == (50.0,)
    assert stub.requests[1][:3] == ("GET", "/api/v1/query", "avg")


async def test_a_query_that_fails_costs_its_own_values() -> None:
    async with metrics_stub(queries={"avg": vector({"n1": 0.5})}) as stub:
        report, problems = await reader(prometheus(stub)).read()
    assert report.loads("CPU").mean == (50.0,)
    assert problems == "a query failed: ValueError: status code 500"


async def test_why_prometheus_refuses_a_query() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"status": "error", "errorType": "bad_data", "error": "parse error at 3"}, status=400)

    async with metrics_stub(answer=answer) as stub:
        with pytest.raises(MetricsError, match="query avg: parse error at 3"):
            await reader(prometheus(stub)).read()


async def test_the_token_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    async with metrics_stub(queries={"avg": vector({"n1": 0.5})}) as stub:
        source = reader(prometheus(stub, AVERAGE, token_file=str(file)))
        with pytest.raises(MetricsError, match="No such file"):
            await source.read()
        for token in ("first", "second"):
            file.write_text(f"{token}\n")
            await source.read()
    assert [request[3] for request in stub.requests] == ["Bearer first", "Bearer second"]


async def test_certificates_are_checked(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("server", dns="localhost", ip="127.0.0.1"))
    async with metrics_stub(queries={"avg": vector({"n1": 0.5})}, ssl=tls) as stub:
        for fields in ({"ca_file": str(authority.file)}, {"insecure_skip_verify": True}):
            report, _ = await reader(prometheus(stub, AVERAGE, **fields)).read()
            assert report.loads("CPU").mean == (50.0,)
        for fields in ({}, {"ca_file": str(other.file)}):
            with pytest.raises(MetricsError, match=r"CERTIFICATE_VERIFY_FAILED|certificate"):
                await reader(prometheus(stub, AVERAGE, **fields)).read()
        with pytest.raises(MetricsError, match="nowhere"):
            await reader(prometheus(stub, AVERAGE, ca_file="/nowhere")).read()


async def test_metrics_server_is_asked_through_the_api_server() -> None:
    api = Api(b'{"items": [{"metadata": {"name": "n1"}, "usage": {"cpu": "1", "memory": "2Gi"}}]}')
    report, _ = await reader(MetricsSource(KUBERNETES_METRICS_SERVER), api).read()
    assert api.path == "/apis/metrics.k8s.io/v1beta1/nodes"
    assert (report.loads("CPU").last, report.loads("Memory").last) == ((25.0,), (25.0,))
    with pytest.raises(MetricsError, match="could not find"):
        await reader(MetricsSource(KUBERNETES_METRICS_SERVER), Api(None)).read()


async def huge(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 100_000)


async def endless(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response()


async def compressed(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\x00", headers={"Content-Encoding": "gzip"})


async def moved(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("http://elsewhere/watcher")


async def torn(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.abort()
    return response


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (huge, "an answer of more than 1064960 bytes"),
        (endless, "no answer within"),
        (compressed, "the answer is compressed"),
        (moved, "received status code 302 from watcher"),
        (torn, "payload|not completed"),
        (None, "received status code 500 from watcher"),
    ],
)
async def test_a_source_that_fails(answer: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_reader, "_DEADLINE_S", 0.5)
    async with metrics_stub(answer=answer) as stub:
        with pytest.raises(MetricsError, match=message):
            await reader(MetricsSource(WATCHER, stub.url)).read()


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "nonsense", "ftp://x", "http://[", ""])
async def test_addresses_that_lead_nowhere(address: str) -> None:
    with pytest.raises(MetricsError):
        await reader(MetricsSource(WATCHER, address)).read()
