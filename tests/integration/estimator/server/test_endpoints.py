"""Connections to the estimator that do nothing: its endpoints and its gRPC port."""

from __future__ import annotations

import contextlib
import socket

import pytest

from podium.estimator.server import grpc_server as grpc_module
from podium.estimator.server.app import EstimatorApp, Options
from podium.lib import endpoints, inbound
from tests.control_plane.processes import free_ports
from tests.e2e.waiting import eventually
from tests.integration.estimator.server.conftest import serving

pytestmark = pytest.mark.anyio


async def is_closed(connection: socket.socket) -> bool:
    """Return True if the server has closed it."""
    connection.setblocking(False)
    try:
        return connection.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_idle_connections_to_the_endpoints_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "IDLE_S_MAX", 0.2)
    monkeypatch.setattr(inbound, "_LOOK_EVERY_S", 0.02)
    health, metrics = free_ports(2)
    options = Options(("127.0.0.1", 0), ("127.0.0.1", health), ("127.0.0.1", metrics))
    async with serving(EstimatorApp(options)):
        for port in (health, metrics):
            with socket.create_connection(("127.0.0.1", port)) as idle:
                await eventually(lambda idle=idle: is_closed(idle))  # type: ignore[misc]


async def test_the_grpc_port_takes_no_more_connections_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_module, "inbound_connections_max", lambda: 8)
    (port,) = free_ports(1)
    options = Options(("127.0.0.1", port), None, None)
    async with serving(EstimatorApp(options)):
        with contextlib.ExitStack() as stack:
            crowd = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(40)]

            async def most_are_closed() -> bool:
                return sum([await is_closed(connection) for connection in crowd]) >= 30

            await eventually(most_are_closed)
