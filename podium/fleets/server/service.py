"""Answers requests over HTTP JSON and gRPC. Both interfaces give the same answer to the same question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc
import grpc.aio
import orjson
from aiohttp import web

from podium.fleets.answers import FleetFit
from podium.fleets.server.fleet import WatchedFleet
from podium.fleets.server.messages import METHOD, SERVICE, RequestError, fit_response, read_fit_request
from podium.fleets.server.metrics import FleetMetrics
from podium.fleets.server.requests import BODY_BYTES_MAX, BadRequestError, RequestReader
from podium.lib.clock import Clock
from podium.lib.descriptors import inbound_connections_max
from podium.lib.endpoints import serving
from podium.lib.log import get_logger
from podium.server.serving import ServingTls, listen
from podium.server.serving.plain import refuse_other_sites
from podium.server.serving.requests import RequestLog

log = get_logger("fleets")

_TIMEOUT_S: Final = 3.0
_GRPC_RESERVE_S: Final = 0.05
"""What is left of a caller's deadline for the answer to arrive."""


class FleetService:
    """The answers of one fleet."""

    def __init__(self, fleet: WatchedFleet, reader: RequestReader, metrics: FleetMetrics, clock: Clock) -> None:
        self._fleet = fleet
        self._reader = reader
        self._metrics = metrics
        self._clock = clock

    async def _answer(self, api: str, content: bytes, options: dict[str, str], deadline_s: float) -> FleetFit:
        """Answer a request. Raises: BadRequestError."""
        started_s = self._clock.monotonic()
        try:
            request = await self._reader.read(content, options)
            remaining_s = (request.timeout_s or deadline_s) - (self._clock.monotonic() - started_s)
            answer = await self._fleet.ask(request.question, request.clusters, remaining_s)
        except BadRequestError:
            self._metrics.count_answer(api, "error", self._clock.monotonic() - started_s)
            raise
        seconds = self._clock.monotonic() - started_s
        self._metrics.count_answer(api, "fits" if answer else "none", seconds)
        log.info(
            "Answered",
            workload=answer.workload,
            best=answer.best,
            without=len(answer.without),
            seconds=round(seconds, 6),
        )
        return answer

    # ------------------------------------------------------------ HTTP

    def routes(self) -> list[web.RouteDef]:
        """Return the handlers of the HTTP interface."""
        return [web.post("/fit", self._fit_page), web.get("/clusters", self._clusters_page)]

    async def _fit_page(self, request: web.Request) -> web.Response:
        """Return the clusters that take the workload in the request's body."""
        options = dict(request.query)
        if len(options) != len(request.query):
            return _json({"error": "an option is given twice"}, 400)
        try:
            answer = await self._answer("http", await request.read(), options, _TIMEOUT_S)
        except BadRequestError as error:
            return _json({"error": str(error)}, 400)
        return _json(answer.as_dict())

    async def _clusters_page(self, request: web.Request) -> web.Response:
        """Return the state of each member."""
        del request
        return _json({"clusters": list(self._fleet.statistics())})

    # ------------------------------------------------------------ gRPC

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler of the gRPC interface."""
        return grpc.method_handlers_generic_handler(SERVICE, {METHOD: grpc.unary_unary_rpc_method_handler(self._fit)})

    async def _fit(self, content: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        remaining_s: float | None = context.time_remaining()
        deadline_s = _TIMEOUT_S if remaining_s is None else max(remaining_s - _GRPC_RESERVE_S, 0.0)
        response = b""
        try:
            workload, options = read_fit_request(content)
            response = fit_response(await self._answer("grpc", workload, options, deadline_s))
        except (BadRequestError, RequestError) as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return response


@asynccontextmanager
async def serve_http(service: FleetService, host: str, port: int, tls: ServingTls | None) -> AsyncIterator[int]:
    """Serve the HTTP interface while the context is open; yields the port.

    Raises: ServingError if the port cannot be listened on.
    """
    app = web.Application(middlewares=[refuse_other_sites], client_max_size=BODY_BYTES_MAX)
    app.add_routes(service.routes())
    listener = listen(host, port, may_be_name=True, options="--http-bind-address")
    port = listener.getsockname()[1]
    context = None if tls is None else lambda: tls.context
    async with serving(app, listener, RequestLog(), connections_max=inbound_connections_max(), tls=context):
        yield port


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")
