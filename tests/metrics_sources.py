"""A stand-in for a load watcher and for Prometheus, which answers as a test wants it to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def watcher_answer(loads: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """What a load watcher says about averages by node and type."""
    nodes = {
        name: {"metrics": [{"type": type_, "operator": "AVG", "value": value} for type_, value in values.items()]}
        for name, values in loads.items()
    }
    return {"window": {"duration": "15m", "start": 0, "end": 900}, "data": {"NodeMetricsMap": nodes}}


def vector(values: Mapping[str, float | str], label: str = "instance") -> dict[str, Any]:
    """What Prometheus says about a query with these series."""
    result = [{"metric": {label: name}, "value": [1, str(value)]} for name, value in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@dataclass
class MetricsStub:
    """Answers `/watcher` with `watched`, and queries by their text; `answer` takes the place of both."""

    watched: Any = None
    queries: dict[str, Any] = field(default_factory=dict)
    answer: Answer | None = None
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        expr = str(form.get("query") or request.query.get("query", ""))
        self.requests.append((request.method, request.path, expr, request.headers.get("Authorization", "")))
        if self.answer is not None:
            return await self.answer(request)
        body = self.watched if request.path == "/watcher" else self.queries.get(expr)
        return web.Response(status=500) if body is None else web.json_response(body)


@asynccontextmanager
async def metrics_stub(**fields: Any) -> AsyncIterator[MetricsStub]:
    """A running stub; `ssl` has it serve HTTPS."""
    tls = fields.pop("ssl", None)
    stub, app = MetricsStub(**fields), web.Application()
    app.router.add_route("*", "/{path:.*}", stub.handle)
    server = TestServer(app, scheme="http" if tls is None else "https")
    await server.start_server(ssl=tls)
    stub.url = str(server.make_url("")).rstrip("/")
    try:
        yield stub
    finally:
        await server.close()
