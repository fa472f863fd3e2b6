"""A load watcher that invents what it reports: a process of its own, for both schedulers alike.

Run as a program, `python -m benchmarks.load_watcher PORT NODES`, it is the server.

Source: github.com/paypal/load-watcher pkg/watcher/api.go, v0.2.4.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from aiohttp import web

from benchmarks import nodes
from benchmarks.nodes import Json
from benchmarks.slow_extender import listens
from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import ControlPlane

_WINDOW_S: Final = 900
# Two primes, so that cpu and memory differ between neighbours, and no node is hot.
_CPU_STEP, _CPU_MAX = 7, 61
_MEMORY_STEP, _MEMORY_MAX = 11, 67


def report(node_count: int, now_s: int) -> Json:
    """The loads of so many nodes, in percent, over the quarter of an hour before `now_s`."""
    return {
        "timestamp": now_s,
        "window": {"duration": "15m", "start": now_s - _WINDOW_S, "end": now_s},
        "source": "benchmark",
        "data": {"NodeMetricsMap": {nodes.name(number): {"metrics": _metrics(number)} for number in range(node_count)}},
    }


def _metrics(number: int) -> list[Json]:
    cpu, memory = 10 + number * _CPU_STEP % _CPU_MAX, 10 + number * _MEMORY_STEP % _MEMORY_MAX
    values = (("CPU", "AVG", cpu), ("CPU", "STD", cpu / 8), ("Memory", "AVG", memory), ("Memory", "STD", memory / 8))
    return [
        {"name": f"host.{kind.lower()}", "type": kind, "operator": operator, "rollup": "15m", "value": float(value)}
        for kind, operator, value in values
    ]


@contextmanager
def serving(plane: ControlPlane, node_count: int) -> Iterator[str]:
    """Run the server; gives its address."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.load_watcher", str(port), str(node_count)]
    server = ServerProcess("load watcher", command, plane.directory / f"load-watcher-{port}.log")
    try:
        server.wait_ready(lambda: listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def application(node_count: int) -> web.Application:
    """Answers with a new report each time."""

    async def read_loads(_: web.Request) -> web.Response:
        body = msgspec.json.encode(report(node_count, int(time.time())))
        return web.Response(body=body, content_type="application/json")

    web_application = web.Application()
    web_application.router.add_get("/watcher", read_loads)
    return web_application


if __name__ == "__main__":
    web.run_app(application(int(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
