"""A connection to a port of a pod, through the API server and the pod's kubelet.

The API server removes the user's credentials from requests that it proxies to a pod (pods/proxy), so that the pod sees
an anonymous user. Forwarded bytes reach it untouched: TLS and credentials are between the user and the pod.

Owns the WebSocket's framing and one request over it. Never decides whom to ask.

Source: the port forward of kubelet's streaming server over WebSockets, v4.channel.k8s.io.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar
from urllib.parse import quote

import aiohttp
import anyio

from podium.client.http_connection import Connection, words
from podium.client.session import ApiSession
from podium.objects.api_errors import ApiError, ConnectionLost, Unreachable, from_response

T = TypeVar("T")

_CLOSE_S_MAX: Final = 1.0
_PROTOCOL: Final = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PORT_BYTES: Final = 2
"""The first message of each channel is the port, which the two sides need not tell each other again."""
_PIECE_BYTES: Final = 32 * 1024
_REFUSED: Final = 400


class ForwardedPort:
    """A connection to a server behind the port, which is asked with one request at a time."""

    def __init__(self, connection: Connection, failure: list[str]) -> None:
        self._connection = connection
        self._failure = failure

    async def get(self, path: str, authorization: str | None, *, deadline_s: float, answer_bytes_max: int) -> bytes:
        """Return the body of a successful answer.

        Raises: an `ApiError`.
        """
        lines = [f"GET {path} HTTP/1.1", "Host: podium", "Accept: application/json", "Accept-Encoding: identity"]
        lines += [] if authorization is None else [f"Authorization: {authorization}"]
        request = "\r\n".join((*lines, "", "")).encode("latin-1")
        timer = asyncio.get_running_loop().call_later(deadline_s, self._connection.give_up)
        try:
            answer = await self._connection.send(request, answer_bytes_max, lingers=False)
        except ConnectionLost as error:
            raise ConnectionLost("; ".join((str(error), *self._failure))) from error
        finally:
            timer.cancel()
        if answer.status >= _REFUSED:
            raise from_response(answer.status, answer.body, answer.retry_after)
        return answer.body


async def over_forwarded_port(
    session: ApiSession,
    pod: tuple[str, str],
    port: int,
    tls: ssl.SSLContext,
    ask: Callable[[ForwardedPort], Awaitable[T]],
    *,
    deadline_s: float,
) -> T:
    """Connect to a port of a pod, with TLS, and return what is asked over that connection.

    Args:
        pod: its namespace and its name.
        deadline_s: for each of the steps of making the connection.

    Raises: an `ApiError`; `Unreachable` if the pod cannot be reached.
    """
    namespace, name = (quote(part, safe="") for part in pod)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/portforward?ports={port}"
    web_socket = await session.websocket(path, _PROTOCOL, deadline_s=deadline_s)
    local_end, remote_end = socket.socketpair()
    local_end.setblocking(False)
    remote_end.setblocking(False)
    answers: list[T] = []
    problem: ApiError | None = None
    with remote_end:
        async with anyio.create_task_group() as tasks:
            failure: list[str] = []
            tasks.start_soon(_receive, web_socket, remote_end, failure)
            tasks.start_soon(_send, web_socket, remote_end)
            try:
                connection = await _connect(local_end, tls, failure, deadline_s)
                try:
                    answers.append(await ask(ForwardedPort(connection, failure)))
                finally:
                    connection.abort()
            except ApiError as error:
                # Raised below: the group would wrap it.
                problem = error
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(_CLOSE_S_MAX):
            await web_socket.close()
    if problem is not None:
        raise problem
    return answers[0]


async def _connect(local_end: socket.socket, tls: ssl.SSLContext, failure: list[str], deadline_s: float) -> Connection:
    loop = asyncio.get_running_loop()
    try:
        with anyio.fail_after(deadline_s):
            _, connection = await loop.create_connection(Connection, sock=local_end, ssl=tls, server_hostname="podium")
    except (OSError, TimeoutError) as error:
        local_end.close()
        raise Unreachable("; ".join((words(error), *failure))) from error
    return connection


async def _receive(web_socket: aiohttp.ClientWebSocketResponse, remote_end: socket.socket, failure: list[str]) -> None:
    """Pass on what the pod sends, and note what the kubelet says about the connection."""
    loop = asyncio.get_running_loop()
    unread = {_DATA: _PORT_BYTES, _ERROR: _PORT_BYTES}
    with suppress(OSError):
        async for message in web_socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            bytes_skipped = min(unread.get(channel, 0), len(data))
            if channel in unread:
                unread[channel] -= bytes_skipped
            if channel == _DATA and data[bytes_skipped:]:
                await loop.sock_sendall(remote_end, data[bytes_skipped:])
            elif channel == _ERROR and data[bytes_skipped:]:
                failure.append(data[bytes_skipped:].decode(errors="replace").strip())
                break
        remote_end.shutdown(socket.SHUT_WR)


async def _send(web_socket: aiohttp.ClientWebSocketResponse, remote_end: socket.socket) -> None:
    """Pass on what is sent to the pod."""
    loop = asyncio.get_running_loop()
    with suppress(OSError, aiohttp.ClientError):
        while piece := await loop.sock_recv(remote_end, _PIECE_BYTES):
            await web_socket.send_bytes(bytes([_DATA]) + piece)
