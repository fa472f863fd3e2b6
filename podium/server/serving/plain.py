"""Serves a few pages over plain HTTP, as the upstream of some processes does: without TLS or authentication."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podium.lib.descriptors import inbound_connections_max
from podium.lib.endpoints import serving
from podium.lib.web_sites import site_refusal
from podium.server.serving.listener import listen
from podium.server.serving.requests import RequestLog
from podium.server.serving.server import Pages, metrics_page


@asynccontextmanager
async def serve_plain(
    host: str, port: int, pages: Pages, *, middlewares: Sequence[Middleware] = (), options: str = ""
) -> AsyncIterator[int]:
    """Serve while the context is open, then give running requests up to 5 s to end. Yields the port.

    Args:
        host: an IP address or a name; "" listens on all addresses.
        port: 0 selects any free port.
        pages: handlers of GET requests, by path.
        middlewares: run before each handler, the first one outermost.
        options: the options of the command line that choose host and port, for the error.

    Raises: ServingError if the port cannot be listened on.
    """
    app = web.Application(middlewares=middlewares)
    app.add_routes([web.get(path, handler) for path, handler in pages.items()])
    listener = listen(host, port, may_be_name=True, options=options)
    port = listener.getsockname()[1]
    async with serving(app, listener, RequestLog(), connections_max=inbound_connections_max()):
        yield port


@web.middleware
async def refuse_other_sites(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 403 to a request of a web site in the user's browser. For addresses that only this machine reaches."""
    if refusal := site_refusal(request.headers):
        raise web.HTTPForbidden(text=refusal)
    return await handler(request)


@asynccontextmanager
async def serve_health_and_metrics(
    health_address: tuple[str, int] | None,
    metrics_address: tuple[str, int] | None,
    render: Callable[[], bytes],
    *,
    not_ready: Callable[[], str | None],
    not_live: Callable[[], str | None] = lambda: None,
) -> AsyncIterator[None]:
    """Serve `/healthz`, `/livez`, `/readyz` at one address and `/metrics` at another, while the context is open.

    Args:
        health_address, metrics_address: `host` and `port` of `serve_plain`; None to serve nothing there.
        render: the metrics in the Prometheus text format.
        not_ready, not_live: return the reason why the process is not ready, or not live; None if it is.

    Raises: ServingError if a port cannot be listened on.
    """
    health, metrics = health_and_metrics_pages(render, not_ready, not_live)
    async with AsyncExitStack() as stack:
        endpoints = (
            ("--health-probe-bind-address", health_address, health),
            ("--metrics-bind-address", metrics_address, metrics),
        )
        for option, address, pages in endpoints:
            if address is not None:
                advice = f"{option} ('' disables it)"
                await stack.enter_async_context(serve_plain(*address, pages, options=advice))
        yield


def health_and_metrics_pages(
    render: Callable[[], bytes], not_ready: Callable[[], str | None], not_live: Callable[[], str | None]
) -> tuple[Pages, Pages]:
    """Return the pages of the health address and of the metrics address."""
    live = health_page(not_live)
    return {"/healthz": live, "/livez": live, "/readyz": health_page(not_ready)}, {"/metrics": metrics_page(render)}


def health_page(check: Callable[[], str | None] = lambda: None) -> Handler:
    """Return a handler that responds `ok`, or status 500 and the reason if `check` returns one."""

    async def show(_: web.Request) -> web.Response:
        """Return `ok`, or status 500 with the reason why not."""
        reason = check()
        return web.Response(status=500 if reason else 200, text=reason or "ok")

    return show
