"""An extender that takes its time and lets every node through: a process of its own, for both schedulers alike.

Run as a program, `python -m benchmarks.slow_extender PORT DELAY_S`, it is the server.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Raw, Struct

from tests.control_plane.processes import ServerProcess, free_ports
from tests.control_plane.servers import ControlPlane

DELAY_S: Final = 0.02


class _Args(Struct):
    Nodes: Raw
    NodeNames: Raw


_decode = msgspec.json.Decoder(_Args).decode


@contextmanager
def beside(plane: ControlPlane, node_count: int) -> Iterator[Mapping[str, Any]]:
    """The server, and the configuration that names it as an extender that is sent whole nodes, as is the default."""
    del node_count
    [port] = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.slow_extender", str(port), str(DELAY_S)]
    server = ServerProcess("extender", command, plane.directory / f"extender-{port}.log")
    try:
        server.wait_ready(lambda: listens(port))
        yield {"extenders": [{"urlPrefix": f"http://127.0.0.1:{port}", "filterVerb": "filter"}]}
    finally:
        server.stop()


def listens(port: int) -> bool:
    """Return True if a server accepts connections on the port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answer(body: bytes) -> bytes:
    """All nodes, as they were sent."""
    args = _decode(body)
    return msgspec.json.encode({"Nodes": args.Nodes, "NodeNames": args.NodeNames})


def application(delay_s: float) -> web.Application:
    """Answers so long after each request."""

    async def filter_nodes(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.sleep(delay_s)
        return web.Response(body=answer(body), content_type="application/json")

    web_application = web.Application(client_max_size=1 << 30)
    web_application.router.add_post("/filter", filter_nodes)
    return web_application


if __name__ == "__main__":
    web.run_app(application(float(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
