"""A gRPC server on one port, with limits for connections, since any client may open them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import grpc
import grpc.aio

from podium.lib.descriptors import inbound_connections_max
from podium.lib.error_text import error_text
from podium.server.serving import ServingError, listen

_STOP_S_MAX: Final = 5.0


def _options() -> list[tuple[str, int]]:
    """Return limits for connections. Connections beyond a limit are closed at once."""
    return [
        # Two servers on one port would share its connections, and each would know half of the members.
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", inbound_connections_max()),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.max_connection_idle_ms", 300_000),
    ]


@asynccontextmanager
async def serve_grpc(
    handler: grpc.GenericRpcHandler,
    host: str,
    port: int,
    credentials: grpc.ServerCredentials | None,
    *,
    options: str = "",
) -> AsyncIterator[int]:
    """Serve while the context is open; then let running requests end, for at most 5 s. Yields the port.

    Args:
        host: an IP address or a name; "" listens on all addresses.
        port: 0 selects any free port.
        credentials: None for plain text.
        options: the options of the command line that choose host and port, for the error.

    Raises: ServingError if the address cannot be listened on.
    """
    server = grpc.aio.server(options=_options())
    server.add_generic_rpc_handlers((handler,))
    address = f"[{host}]:{port}" if ":" in host else f"{host or '[::]'}:{port}"
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        # gRPC does not say why: a listener of our own on the same address fails for the same reason.
        listen(host, port, may_be_name=True, options=options).close()
        raise ServingError(f"cannot listen on {address}: {error_text(error)}") from error
    await server.start()
    try:
        yield port
    finally:
        # Shielded: cancellation must not leave open calls without an answer.
        with anyio.move_on_after(_STOP_S_MAX + 1.0, shield=True):
            await server.stop(_STOP_S_MAX)
