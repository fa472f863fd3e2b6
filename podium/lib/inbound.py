"""Inbound connections of a server: accepted up to a limit, and closed if they are idle for too long.

Owns each socket from its acceptance on, including the TLS handshake: a silent client takes up a descriptor, too. Knows
no protocol; the protocol's owner reports when a request begins and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import anyio
import anyio.abc

Reason = Literal["idle", "full"]

_HANDSHAKE_S_MAX: Final = 10.0
_FAREWELL_S_MAX: Final = 2.0
_LOOK_EVERY_S: Final = 2.0
_NO_DESCRIPTORS_S: Final = 0.1
_LEAVE_S_MAX: Final = 0.5
_HUNG_UP_S_MAX: Final = 0.5
_LEAVE_LOOK_EVERY_S: Final = 0.005
_LEAVE_LOOKS_MIN: Final = 20


@dataclass(slots=True, eq=False)
class _Inbound:
    socket: socket.socket
    peer: str
    since_s: float
    is_busy: bool = False


class InboundConnections:
    """Accepts connections and hands them to a protocol.

    A connection on which no request is being answered is closed after `idle_s_max`: this limits the handshake, a
    request's headers and the pause between two requests. If there are too many connections, those of the peer with the
    most are closed first, starting with the longest idle ones.

    Args:
        busy_s_max: the limit for the response to one request, until the client has read it.
        on_drop: called with the reason why a connection was closed.
    """

    def __init__(
        self,
        connections_max: int,
        *,
        idle_s_max: float,
        busy_s_max: float,
        on_drop: Callable[[Reason], None] = lambda _: None,
    ) -> None:
        self._connections_max = connections_max
        self._idle_s_max = idle_s_max
        self._busy_s_max = busy_s_max
        self._on_drop = on_drop
        self._open: set[_Inbound] = set()
        self._by_protocol: dict[int, _Inbound] = {}

    async def serve(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """Accept connections until cancelled; connections that are open then stay open.

        Args:
            tls: called for the TLS settings of each connection.
        """
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._age)
            while True:
                try:
                    accepted, address = await loop.sock_accept(listener)
                except ConnectionError:
                    continue  # The client closed the connection before it was accepted.
                except OSError:
                    # No descriptors or no memory left: close other connections.
                    self._drop_some()
                    await anyio.sleep(_NO_DESCRIPTORS_S)
                    continue
                self._make_room()
                inbound = _Inbound(accepted, str(address[0]), loop.time())
                self._open.add(inbound)
                tasks.start_soon(self._connect, inbound, make_protocol, None if tls is None else tls())

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """Mark the protocol's connection busy: a request has been read."""
        self._mark(protocol, is_busy=True)

    def end(self, protocol: asyncio.BaseProtocol) -> None:
        """Mark the protocol's connection idle: the request has been answered."""
        self._mark(protocol, is_busy=False)

    async def wait_closed(self) -> None:
        """Wait until all connections, whose closing their owner has begun, are closed; TLS says goodbye first.

        A peer that does not answer is hung up on after a short while.
        """
        loop = asyncio.get_running_loop()
        for seconds in (_LEAVE_S_MAX, _HUNG_UP_S_MAX):
            ends_s, looks = loop.time() + seconds, 0
            # On a machine without a processor to spare, the time is over before the loop has read anything.
            while self._open and (loop.time() < ends_s or looks < _LEAVE_LOOKS_MIN):
                await anyio.sleep(_LEAVE_LOOK_EVERY_S)
                self._forget_closed()
                looks += 1
            for inbound in self._open:
                _hang_up(inbound.socket)

    def _mark(self, protocol: asyncio.BaseProtocol, *, is_busy: bool) -> None:
        inbound = self._by_protocol.get(id(protocol))
        if inbound is not None:
            inbound.is_busy = is_busy
            inbound.since_s = asyncio.get_running_loop().time()

    async def _connect(
        self, inbound: _Inbound, make_protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        limits: dict[str, Any] = {}
        if tls is not None:
            limits = {
                "ssl": tls,
                "ssl_handshake_timeout": _HANDSHAKE_S_MAX,
                "ssl_shutdown_timeout": _FAREWELL_S_MAX,
            }

        def make() -> asyncio.Protocol:
            protocol = make_protocol()
            # A protocol lives as long as its connection, so its `id()` identifies it.
            self._by_protocol[id(protocol)] = inbound
            return protocol

        try:
            await asyncio.get_running_loop().connect_accepted_socket(make, inbound.socket, **limits)
        except (OSError, TimeoutError):
            inbound.socket.close()
        except BaseException:
            # Its transport still exists, and closes it.
            _hang_up(inbound.socket)
            raise

    # ------------------------------------------------------------ which connections are closed

    async def _age(self) -> None:
        while True:
            await anyio.sleep(_LOOK_EVERY_S)
            self._forget_closed()
            now_s = asyncio.get_running_loop().time()
            for inbound in tuple(self._open):
                s_max = self._busy_s_max if inbound.is_busy else self._idle_s_max
                if now_s - inbound.since_s > s_max:
                    self._drop(inbound, "idle")

    def _make_room(self) -> None:
        if len(self._open) >= self._connections_max:
            self._forget_closed()
        if len(self._open) >= self._connections_max:
            self._drop_some()

    def _drop_some(self) -> None:
        """Close a sixteenth of all connections, so that they need not be sorted for each new one."""
        of_peer = Counter(inbound.peer for inbound in self._open)
        ranked = sorted(self._open, key=lambda inbound: (inbound.is_busy, -of_peer[inbound.peer], inbound.since_s))
        for inbound in ranked[: max(1, self._connections_max // 16)]:
            self._drop(inbound, "full")

    def _drop(self, inbound: _Inbound, reason: Reason) -> None:
        self._open.discard(inbound)
        self._on_drop(reason)
        _hang_up(inbound.socket)

    def _forget_closed(self) -> None:
        self._open = {inbound for inbound in self._open if inbound.socket.fileno() != -1}
        self._by_protocol = {key: inbound for key, inbound in self._by_protocol.items() if inbound in self._open}


def _hang_up(accepted: socket.socket) -> None:
    """Shut the socket down: its user, a transport or the handshake, sees the end of the stream and closes it."""
    with contextlib.suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)
