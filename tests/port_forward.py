"""A kubelet's side of a forwarded port: bytes go to a port of this machine, whatever pod is named."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from aiohttp import WSMsgType, web

from podium.server.serving import self_signed

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1


async def forward(request: web.BaseRequest, port: int) -> web.StreamResponse:
    """Serve one connection to the port, as kubelet's streaming server does over WebSockets."""
    web_socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await web_socket.prepare(request)
    assert web_socket.ws_protocol == PROTOCOL
    for channel in (_DATA, _ERROR):
        await web_socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        text = f"error forwarding port {port}: {error}"
        await web_socket.send_bytes(bytes([_ERROR]) + text.encode())
        await web_socket.close()
        return web_socket
    try:
        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                # The client may go amid an answer.
                with suppress(OSError, RuntimeError):
                    while data := await reader.read(1024):
                        await web_socket.send_bytes(bytes([_DATA]) + data)
                    await web_socket.close()

            tasks.start_soon(answer)
            async for message in web_socket:
                if message.type is WSMsgType.BINARY and message.data[0] == _DATA:
                    writer.write(message.data[1:])
            tasks.cancel_scope.cancel()
    finally:
        writer.transport.abort()
    return web_socket


@asynccontextmanager
async def kubelet(directory: Path) -> AsyncIterator[int]:
    """The port of a kubelet that only forwards ports, over TLS."""
    pair = self_signed()
    certificate, key = directory / "kubelet.crt", directory / "kubelet.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await forward(request, int(request.query["port"]))

    app = web.Application()
    app.router.add_get("/portForward/{namespace}/{pod}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        await web.SockSite(runner, listener, ssl_context=tls).start()
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()
