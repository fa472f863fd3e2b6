"""Connections that others open to a server: accepted up to a limit, and not kept for who does nothing with them.

Owns each socket from its acceptance on, the TLS handshake included: whoever connects and says nothing takes up a
descriptor, too. Knows no protocol; who does says when a request is being answered.
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


@dataclass(slots=True, eq=False)
class _Inbound:
    socket: socket.socket
    peer: str
    since_s: float
    is_busy: bool = False


class InboundConnections:
    """Accepts connections and hands them to a protocol.

    A connection on which no request is being answered is closed after `idle_s_max`: that is the deadline of the
    handshake and of a request's headers, and the longest rest between two requests. Where there are too many, those of
    the peer that has most of them go first, the longest idle ones before others.

    Args:
        busy_s_max: how long the answer to one request may take, until who asked has read it.
        on_drop: told why a connection was closed.
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
        """Accept until cancelled; connections that are open by then stay open.

        Args:
            tls: asked for each connection.
        """
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._age)
            while True:
                try:
                    accepted, address = await loop.sock_accept(listener)
                except ConnectionError:
                    continue  # Gone again before it was accepted.
                except OSError:
                    # No descriptors, or no memory: those of others have to do.
                    self._drop_some()
                    await anyio.sleep(_NO_DESCRIPTORS_S)
                    continue
                self._make_room()
                inbound = _Inbound(accepted, str(address[0]), loop.time())
                self._open.add(inbound)
                tasks.start_soon(self._connect, inbound, make_protocol, None if tls is None else tls())

    def begin(self, protocol: asyncio.BaseProtocol) -> None:
        """A request has been read on the connection of that protocol."""
        self._mark(protocol, is_busy=True)

    def end(self, protocol: asyncio.BaseProtocol) -> None:
        """It has been answered."""
        self._mark(protocol, is_busy=False)

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
            # A protocol lives as long as its connection, and so does its identity.
            self._by_protocol[id(protocol)] = inbound
            return protocol

        try:
            await asyncio.get_running_loop().connect_accepted_socket(make, inbound.socket, **limits)
        except (OSError, TimeoutError):
            inbound.socket.close()
        except BaseException:
            # Its transport is still there, and closes it.
            _hang_up(inbound.socket)
            raise

    # ------------------------------------------------------------ who has to go

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
        """Close a sixteenth of all, so that a crowd is not sorted for each newcomer."""
        of_peer = Counter(inbound.peer for inbound in self._open)
        ranked = sorted(self._open, key=lambda each: (each.is_busy, -of_peer[each.peer], each.since_s))
        for inbound in ranked[: max(1, self._connections_max // 16)]:
            self._drop(inbound, "full")

    def _drop(self, inbound: _Inbound, reason: Reason) -> None:
        self._open.discard(inbound)
        self._on_drop(reason)
        _hang_up(inbound.socket)

    def _forget_closed(self) -> None:
        self._open = {inbound for inbound in self._open if inbound.socket.fileno() != -1}
        self._by_protocol = {key: each for key, each in self._by_protocol.items() if each in self._open}


def _hang_up(accepted: socket.socket) -> None:
    """Have whoever uses the socket, a transport or the handshake, meet the end of the stream and close it."""
    with contextlib.suppress(OSError):
        accepted.shutdown(socket.SHUT_RDWR)
