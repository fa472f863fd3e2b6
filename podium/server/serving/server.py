"""Serves the endpoints over HTTPS.

/healthz, /livez and /readyz; /metrics; /configz; /statusz, /flagz and an index of all paths at /; the pages that the
daemon adds, such as /debug/queue. Anything else is 404. The handlers' docstrings are the reference of the endpoints.

A middleware authorizes each request before its handler runs: see `guard`.

Source: cmd/kube-scheduler/app/server.go, apiserver/pkg/server/secure_serving.go (1.36.2).
Differs: of pprof, two profiles are served (`daemon.profile_pages`); the number of connections is limited.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podium.config import NEWEST
from podium.lib.descriptors import inbound_connections_max
from podium.lib.endpoints import serving
from podium.lib.log import get_logger
from podium.server.serving.health import Check, Endpoint, Health, Report, report_one
from podium.server.serving.listener import listen
from podium.server.serving.media_types import prefers_open_metrics
from podium.server.serving.requests import CountingRequestLog
from podium.server.serving.status_pages import status_pages
from podium.server.serving.tls import ServingTls
from podium.telemetry import CONTENT_TYPE, OPEN_CONTENT_TYPE, Metrics

log = get_logger("serving")

_OPTIONS: Final = "--secure-port (0 disables the endpoints) or --bind-address"

Configz = Callable[[], Mapping[str, Any]]
"""The answer of /configz: the configuration in effect, as its v1 document, below `componentconfig`."""

Pages = Mapping[str, Handler]
"""The handler of each path."""

_BODY_BYTES_MAX = 64 * 1024
_HEADERS = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Server:
    """The address that the endpoints are served on; port 0 means that they are not served."""

    bind_address: str
    port: int
    listener: socket.socket | None = None


@asynccontextmanager
async def serve(
    bind_address: str,
    port: int,
    tls: ServingTls,
    health: Health,
    metrics: Metrics,
    configz: Configz,
    *,
    pages: Pages = MappingProxyType({}),
    flags: Mapping[str, str] = MappingProxyType({}),
    minor: str = NEWEST.minor,
    middlewares: Sequence[Middleware] = (),
    listener: socket.socket | None = None,
    connections_max: int | None = None,
) -> AsyncIterator[Server]:
    """Serve while the context is open; then let running requests end, for at most 5 s.

    Args:
        bind_address: an IP address; `::` accepts IPv4 too.
        port: 0 disables serving.
        pages: handlers of further pages, by path, for GET.
        flags: the value of each flag of the command line, for /flagz.
        minor: the minor of Kubernetes whose rules decide, for /statusz.
        middlewares: run before each handler, the first one outermost.
        listener: a socket that is already bound, instead of address and port; closed at the end.
        connections_max: beyond this number, the connections that have been idle longest are closed; by default a share
            of the file descriptors that the process may have.

    Raises: ServingError if the port cannot be listened on.
    """
    if listener is None:
        if port == 0:
            yield Server(bind_address, 0)
            return
        listener = listen(bind_address, port, options=_OPTIONS)
    address, port = listener.getsockname()[:2]
    app = application(health, metrics, configz, pages=pages, flags=flags, minor=minor, middlewares=middlewares)
    limit = inbound_connections_max() if connections_max is None else connections_max
    async with serving(app, listener, CountingRequestLog(metrics), connections_max=limit, tls=lambda: tls.context):
        log.info("Serving securely", address=address, port=port)
        yield Server(address, port, listener)


def application(
    health: Health,
    metrics: Metrics,
    configz: Configz,
    *,
    pages: Pages = MappingProxyType({}),
    flags: Mapping[str, str] = MappingProxyType({}),
    minor: str = NEWEST.minor,
    middlewares: Sequence[Middleware] = (),
) -> web.Application:
    """Return the endpoints as an aiohttp application, for callers with a server of their own."""
    app = web.Application(middlewares=middlewares, client_max_size=_BODY_BYTES_MAX)
    app.on_response_prepare.append(_set_headers)
    paths = ["/metrics", "/configz", *pages, *(f"/{endpoint}" for endpoint in health.endpoints())]
    app.add_routes(_routes(health, metrics, configz, {**pages, **status_pages(paths, flags, minor)}))
    return app


def metrics_page(render: Callable[[], bytes]) -> Handler:
    """Return a handler of the metrics in the Prometheus text format."""

    async def show(_: web.Request) -> web.Response:
        """Return the metrics, in the Prometheus text format."""
        return web.Response(body=render(), headers={"Content-Type": CONTENT_TYPE})

    return show


def _metrics_handler(metrics: Metrics) -> Handler:
    """Return the metrics in the preferred format."""

    async def show(request: web.Request) -> web.Response:
        """Return the metrics in the Prometheus text format; as OpenMetrics, with exemplars, if the client prefers."""
        is_open = prefers_open_metrics(request.headers.get("Accept", ""))
        content_type = OPEN_CONTENT_TYPE if is_open else CONTENT_TYPE
        return web.Response(body=metrics.render(is_open=is_open), headers={"Content-Type": content_type})

    return show


def _routes(health: Health, metrics: Metrics, configz: Configz, pages: Pages) -> list[web.RouteDef]:
    """Return the handlers of all paths."""

    async def reset_metrics(_: web.Request) -> web.Response:
        """Reset the metrics."""
        metrics.reset()
        return web.Response(text="metrics reset\n")

    async def show_configz(_: web.Request) -> web.Response:
        """Return the configuration in effect under `componentconfig`, and why a changed one was refused, as JSON."""
        return web.Response(body=orjson.dumps(configz()), content_type="application/json")

    routes = [
        web.get("/metrics", _metrics_handler(metrics)),
        web.delete("/metrics", reset_metrics),
        web.get("/configz", show_configz),
        *(web.get(path, handler) for path, handler in pages.items()),
    ]
    for endpoint, checks in health.endpoints().items():
        routes.append(web.get(f"/{endpoint}", _summary_handler(Endpoint(endpoint, checks))))
        routes.append(web.get(f"/{endpoint}/{{check}}", _check_handler(checks)))
    return routes


def _summary_handler(endpoint: Endpoint) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        """Return `ok`, or status 500 if a check fails. `?verbose` lists the checks, `?exclude=CHECK` omits one."""
        query = request.query
        return _response(await endpoint.report(verbose="verbose" in query, exclude=query.getall("exclude", [])))

    return handle


def _check_handler(checks: Mapping[str, Check]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        """Return `ok`, or status 500 with the reason why this check fails."""
        check = checks.get(request.match_info["check"])
        if check is None:
            raise web.HTTPNotFound
        return _response(await report_one(check))

    return handle


def _response(health: Report) -> web.Response:
    return web.Response(status=200 if health.is_healthy else 500, text=health.text)


async def _set_headers(_: web.Request, response: web.StreamResponse) -> None:
    # Text pages show names of objects; nosniff keeps a browser from taking one for HTML.
    response.headers.update(_HEADERS)
    # Replaces aiohttp's own header, which reveals its version and Python's.
    response.headers["Server"] = "podium"
