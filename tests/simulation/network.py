"""A network within one event loop: real HTTP bytes between client and server, no sockets, no time of its own.

`SimulatedLoop` is a virtual-time loop whose connections are pairs of in-memory transports, so that the scheduler's own
client code and the sandbox's own server code run unchanged and in the same order each time.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any

from tests.virtual_time import VirtualTimeLoop

Factory = Callable[[], asyncio.BaseProtocol]

client_name: ContextVar[str] = ContextVar("client_name", default="")
"""Whose connections the running task opens, where a simulation has several clients."""

_TRANSIT_S = 0.0005
_PIECE_BYTES = 512
_PIECE_S = 0.005


class SimulatedLoop(VirtualTimeLoop):
    """Connects whoever asks to whoever listens on the same port."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Network(self)

    async def create_server(self, protocol_factory: Factory, host: Any = None, port: Any = 0, **_: Any) -> Any:
        return self.network.listen(protocol_factory, port)

    async def create_connection(
        self, protocol_factory: Factory, host: Any = None, port: Any = None, *, sock: Any = None, **_: Any
    ) -> Any:
        if sock is not None:
            port = self.network.dialled.pop(sock.fileno())
            sock.close()
        await asyncio.sleep(_TRANSIT_S)
        return self.network.connect(protocol_factory, port)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self.network.dialled[sock.fileno()] = address[1]


class Network:
    """Who listens, and every connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.dialled: dict[int, int] = {}
        """Ports by the descriptor of a socket that will not be used."""
        self.is_cut = False
        """True if clients are gone: nothing of theirs arrives any more, and nothing new connects."""
        self.piece_bytes: int | None = None
        """The size of the pieces in which data arrives at clients, each a little later than the one before."""
        self.cut_clients: set[str] = set()
        """The clients, by `client_name`, of which nothing arrives any more."""
        self._loop = loop
        self._listeners: dict[int, Factory] = {}
        self._ports = itertools.count(20_000)
        self._ends: dict[_Transport, None] = {}

    def listen(self, factory: Factory, port: int) -> _Listener:
        port = port or next(self._ports)
        self._listeners[port] = factory
        return _Listener(self._listeners, port)

    def connect(self, factory: Factory, port: int) -> tuple[_Transport, asyncio.BaseProtocol]:
        listener = self._listeners.get(port)
        if listener is None or self.is_cut or client_name.get() in self.cut_clients:
            raise ConnectionRefusedError("connection refused")
        client, server = _Transport(self._loop, self), _Transport(self._loop, self)
        client.peer, server.peer = server, client
        client.is_client = True
        client.name = server.name = client_name.get()
        self._ends[client] = self._ends[server] = None
        server_protocol, mine = listener(), factory()
        server.set_protocol(server_protocol)
        client.set_protocol(mine)
        server_protocol.connection_made(server)
        mine.connection_made(client)
        return client, mine

    def narrow(self) -> None:
        """Let what the server says arrive in small pieces, until the network is healed."""
        self.piece_bytes = _PIECE_BYTES

    def heal(self) -> None:
        """Let everything through at once again."""
        self.piece_bytes = None

    def break_connections(self) -> int:
        """Reset every connection at both ends; returns how many."""
        clients = [client for client in self._ends if client.is_client]
        for end in list(self._ends):
            end.abort()
        return len(clients)

    def cut_off(self, client: str) -> None:
        """Reset the connections of one client, and refuse new ones, until it is mended."""
        self.cut_clients.add(client)
        for end in list(self._ends):
            if end.name == client:
                end.abort()

    def mend(self, client: str) -> None:
        """Let one client connect again."""
        self.cut_clients.discard(client)

    def silence_connections(self) -> int:
        """Let every connection stay open with nothing coming through any more; returns how many."""
        silenced = [client for client in self._ends if client.is_client]
        for client in silenced:
            client.is_silent = client.peer.is_silent = True
        return len(silenced)

    def forget(self, transport: _Transport) -> None:
        self._ends.pop(transport, None)


class _Listener:
    def __init__(self, listeners: dict[int, Factory], port: int) -> None:
        self._listeners, self._port = listeners, port
        self.sockets = [self]

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def fileno(self) -> int:
        # A number that the loop reads nothing from.
        return 0

    def close(self) -> None:
        self._listeners.pop(self._port, None)


class _NoSocket:
    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def setsockopt(self, *_: Any) -> None: ...

    def getsockopt(self, *_: Any) -> int:
        return 0


class _Transport(asyncio.Transport):
    """One end of a connection."""

    peer: _Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, network: Network) -> None:
        super().__init__({"socket": _NoSocket(), "peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.is_client = self.is_silent = False
        self.name = ""
        self._loop, self._network = loop, network
        self._protocol: Any = None
        self._is_closing = self._is_lost = self._is_paused = False
        self._waiting: list[Callable[[], None]] = []
        self._in_transit: deque[Callable[[], None]] = deque()
        self._free_s = 0.0  # when the last piece has left

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol  # type: ignore[no-any-return]

    def write(self, data: Any) -> None:
        if not self._is_closing and data:
            content = bytes(data)
            size = len(content) if self.is_client else self._network.piece_bytes or len(content)
            for start in range(0, len(content), size):
                piece = content[start : start + size]
                self._to_peer(partial(self.peer._receive, piece), late_s=0.0 if size == len(content) else _PIECE_S)

    def write_eof(self) -> None:
        self.close()

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        while self._waiting and not self._is_paused:
            self._waiting.pop(0)()

    def close(self) -> None:
        """The regular end: what was written still arrives."""
        if not self._is_closing:
            self._is_closing = True
            self._to_peer(lambda: self.peer._end(None))
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """The irregular end."""
        if not self._is_lost:
            self._is_closing = True
            self._to_peer(lambda: self.peer._end(ConnectionResetError("connection reset by peer")))
            self._loop.call_soon(self._lose, None)

    def _to_peer(self, arrive: Callable[[], None], late_s: float = 0.0) -> None:
        if not self.is_silent:
            # Timers of one instant go off in any order.
            self._in_transit.append(arrive)
            self._free_s = max(self._free_s, self._loop.time()) + late_s
            self._loop.call_at(self._free_s + _TRANSIT_S, lambda: self._in_transit.popleft()())

    def _receive(self, data: bytes) -> None:
        if self._is_paused:
            self._waiting.append(lambda: self._receive(data))
        elif not self._is_lost and not self._is_closing:
            self._protocol.data_received(data)

    def _end(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        if self._is_paused and error is None:
            self._waiting.append(lambda: self._end(error))
            return
        if error is None:
            self._protocol.eof_received()
        self._is_closing = True
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._network.forget(self)
            self._protocol.connection_lost(error)
