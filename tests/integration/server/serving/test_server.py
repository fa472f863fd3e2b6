"""The endpoints over real HTTPS, on both event loops."""

import contextlib
import socket
import ssl
import threading
import time

import aiohttp
import anyio
import anyio.to_thread
import pytest
from aiohttp import web

from podium.daemon import profile_pages
from podium.daemon.profile_pages import ProfilePages
from podium.lib import endpoints
from podium.server.serving import Health, ServingError, ServingTls, self_signed, serve
from podium.server.tls_limits import TlsLimits
from podium.telemetry import CONTENT_TYPE, OPEN_CONTENT_TYPE, Metrics
from tests.builders import pod
from tests.control_plane.processes import free_ports
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

PAIR = self_signed()
CONFIG = {"componentconfig": {"kind": "KubeSchedulerConfiguration", "parallelism": 16}}


@pytest.fixture(
    params=[("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"]
)
def anyio_backend(request):
    return request.param


@contextlib.asynccontextmanager
async def serving(health=None, metrics=None, tls=None, **fields):
    listener = socket.create_server(("127.0.0.1", 0))
    async with serve(
        "127.0.0.1",
        0,
        tls or ServingTls(PAIR),
        health or Health(),
        metrics or Metrics(),
        lambda: CONFIG,
        listener=listener,
        **fields,
    ) as server:
        yield server


@contextlib.asynccontextmanager
async def client(server, at_most=ssl.TLSVersion.MAXIMUM_SUPPORTED):
    context = ssl.create_default_context(cadata=PAIR.certificate.decode())
    context.maximum_version = at_most
    async with aiohttp.ClientSession(
        f"https://127.0.0.1:{server.port}",
        connector=aiohttp.TCPConnector(ssl=context),
        timeout=aiohttp.ClientTimeout(total=PATIENCE_S),
    ) as session:
        yield session


async def get(session, path):
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_health_endpoints_answer_as_kube_schedulers_do():
    synced = False

    def handler_sync():
        return None if synced else "handlers are not fully synchronized"

    health = Health(readyz={"sched-handler-sync": handler_sync})
    async with serving(health) as server, client(server) as session:
        assert await get(session, "/healthz") == (200, "ok")
        assert await get(session, "/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
        assert await get(session, "/readyz") == (
            500,
            "[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        )
        assert await get(session, "/readyz?exclude=sched-handler-sync&exclude=ping") == (200, "ok")
        assert await get(session, "/readyz/sched-handler-sync") == (
            500,
            "internal server error: handlers are not fully synchronized\n",
        )
        synced = True
        assert await get(session, "/readyz") == (200, "ok")
        assert await get(session, "/readyz/sched-handler-sync") == (200, "ok")


async def test_prometheus_is_given_open_metrics_and_others_the_text_format():
    metrics = Metrics()
    metrics.observe_latency(0.1, pod("web-1"))
    prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"
    async with serving(metrics=metrics) as server, client(server) as session:
        async with session.get("/metrics", headers={"Accept": prometheus}) as answer:
            assert answer.headers["Content-Type"] == OPEN_CONTENT_TYPE
            text = await answer.text()
            assert text.endswith("# EOF\n")
            assert 'pod="web-1"' in text
        async with session.get("/metrics", headers={"Accept": "*/*"}) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert "web-1" not in await answer.text()


async def test_a_client_without_tls_13_is_turned_away_where_that_is_the_least():
    limits = TlsLimits("VersionTLS13")
    async with serving(tls=ServingTls(PAIR, limits)) as server:
        async with client(server) as session:
            assert await get(session, "/livez") == (200, "ok")
        async with client(server, at_most=ssl.TLSVersion.TLSv1_2) as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await get(session, "/livez")


@pytest.mark.parametrize("path", ["/readyz/nope", "/metrics/nope", "/debug/pprof/"])
async def test_anything_else_is_not_found(path):
    async with serving() as server, client(server) as session:
        assert (await get(session, path))[0] == 404


async def test_metrics_are_shown_and_reset():
    metrics = Metrics()
    metrics.count_attempt("scheduled", "podium", 0.01)
    line = 'scheduler_schedule_attempts_total{result="scheduled",profile="podium"} 1\n'
    async with serving(metrics=metrics) as server, client(server) as session:
        async with session.get("/metrics") as response:
            assert response.headers["Content-Type"] == CONTENT_TYPE
            assert line in await response.text()
        async with session.delete("/metrics") as response:
            assert (response.status, await response.text()) == (200, "metrics reset\n")
        assert line not in (await get(session, "/metrics"))[1]


async def test_configz_shows_the_configuration():
    async with serving() as server, client(server) as session, session.get("/configz") as response:
        assert await response.json() == CONFIG


async def test_answers_are_not_cached_and_do_not_tell_versions():
    async with serving() as server, client(server) as session, session.get("/healthz") as response:
        assert response.headers["Cache-Control"] == "no-cache, private"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Server"] == "podium"


async def test_a_middleware_stands_before_every_handler():
    @web.middleware
    async def deny(request, handler):
        if request.path.startswith("/healthz"):
            return await handler(request)
        raise web.HTTPForbidden

    async with serving(middlewares=[deny]) as server, client(server) as session:
        assert (await get(session, "/healthz"))[0] == 200
        assert (await get(session, "/metrics"))[0] == 403
        assert (await get(session, "/nope"))[0] == 403


async def test_plain_http_gets_no_answer():
    async with serving() as server, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{server.port}/healthz")


async def test_port_zero_serves_nothing():
    async with serve("127.0.0.1", 0, ServingTls(PAIR), Health(), Metrics(), lambda: CONFIG) as server:
        assert server.port == 0


async def test_a_port_in_use_is_named():
    async with serving() as first:
        with pytest.raises(ServingError, match=f"cannot listen on 127.0.0.1 port {first.port}: Address already in use"):
            async with serve("127.0.0.1", first.port, ServingTls(PAIR), Health(), Metrics(), lambda: CONFIG):
                pass


@pytest.mark.parametrize(("address", "port"), [("localhost", 10259), ("127.0.0.1", 65536), ("192.0.2.1", 10259)])
async def test_an_address_that_cannot_be_listened_on_is_named(address, port):
    with pytest.raises(ServingError, match=f"cannot listen on {address} port {port}: .+"):
        async with serve(address, port, ServingTls(PAIR), Health(), Metrics(), lambda: CONFIG):
            pass


async def test_the_address_and_port_given_are_served():
    (port,) = free_ports(1)
    async with (
        serve("127.0.0.1", port, ServingTls(PAIR), Health(), Metrics(), lambda: CONFIG) as server,
        client(server) as session,
    ):
        assert server.port == port
        assert await get(session, "/livez/ping") == (200, "ok")


async def test_stopping_lets_a_request_end_and_then_refuses_connections():
    start, answers = anyio.Event(), []

    async def slow():
        start.set()
        await anyio.sleep(0.2)

    async with anyio.create_task_group() as tasks, serving(Health(healthz={"slow": slow})) as server:

        async def ask():
            async with client(server) as session:
                answers.append(await get(session, "/healthz"))

        tasks.start_soon(ask)
        await start.wait()
    assert answers == [(200, "ok")]
    with pytest.raises(OSError, match=r".+"):
        await anyio.connect_tcp("127.0.0.1", server.port)


async def test_a_client_that_leaves_during_a_profile_does_not_block_the_next(monkeypatch):
    start, end = threading.Event(), threading.Event()

    def measure(_thread_id, _seconds, stop):
        start.set()
        if stop.wait(PATIENCE_S):
            end.set()
        return {}

    monkeypatch.setattr(profile_pages, "cpu_profile", measure)
    async with serving(pages=ProfilePages().pages) as server:
        async with client(server) as hasty, anyio.create_task_group() as tasks:
            tasks.start_soon(get, hasty, "/debug/pprof/profile?seconds=60")
            assert await anyio.to_thread.run_sync(start.wait, PATIENCE_S)
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(end.wait, PATIENCE_S)


async def test_idle_and_half_open_connections_do_not_hold_up_stopping(monkeypatch):
    monkeypatch.setattr(endpoints, "_DRAIN_S_MAX", PATIENCE_S)
    monkeypatch.setattr(endpoints, "_STOP_S_MAX", PATIENCE_S)
    async with serving() as server, client(server) as session:
        await get(session, "/healthz")
        silent = await anyio.connect_tcp("127.0.0.1", server.port)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < endpoints._DRAIN_S_MAX
    await silent.aclose()


async def test_a_request_that_cannot_be_cancelled_does_not_hold_up_stopping(monkeypatch):
    monkeypatch.setattr(endpoints, "_DRAIN_S_MAX", 0.1)
    monkeypatch.setattr(endpoints, "_STOP_S_MAX", 0.3)
    start, stop = anyio.Event(), anyio.Event()

    async def hangs():
        start.set()
        with anyio.CancelScope(shield=True):
            await stop.wait()

    async def ask(server):
        async with client(server) as session:
            with contextlib.suppress(aiohttp.ClientError):
                await get(session, "/healthz")

    async with anyio.create_task_group() as tasks:
        async with serving(Health(healthz={"hangs": hangs})) as server:
            tasks.start_soon(ask, server)
            await start.wait()
        stop.set()
