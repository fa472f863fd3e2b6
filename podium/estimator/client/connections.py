"""Keeps a connection to the estimator server of each member. Members with the same addresses share one.

One task per server: it dials the addresses in order, waits until the connection breaks, and dials again.
A question to a member without a connection fails at once, unless its first attempts are still under way.

Source: karmada pkg/estimator/client/cache.go and service.go, v1.18.
Differs: members are dialled at once, not one after another. A broken connection is dialled again at all addresses of
its server. A member that is skipped loses the connection that it had.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
import grpc
import grpc.aio
from anyio.abc import TaskGroup

from podium.estimator.client.channels import ClientTls, NoAnswerError, close, connected_channel

DIAL_S: Final = 5.0
"""The time for connecting to one address."""

# gRPC's servers cancel calls at random while more than a thousand wait.
_CALLS_MAX: Final = 500
_STABLE_S: Final = 1.0
_FIRST_PAUSE_S: Final = 0.5
_PAUSE_S_MAX: Final = 30.0


@dataclass(slots=True, eq=False)
class _Server:
    targets: tuple[str, ...]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    channel: grpc.aio.Channel | None = None
    error: str = ""
    settled: anyio.Event = field(default_factory=anyio.Event)
    calls: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(_CALLS_MAX))


class Connections:
    """The connections to members. `open_connections` makes it.

    Args:
        group: runs the servers' tasks.
        tls: None for plain text.
        dial_s: for connecting to one address.
    """

    def __init__(self, group: TaskGroup, tls: ClientTls | None, dial_s: float) -> None:
        self._group = group
        self._tls = tls
        self._dial_s = dial_s
        self._targets_by_member: dict[str, tuple[str, ...]] = {}
        self._servers: dict[tuple[str, ...], _Server] = {}

    def follow(self, targets_by_member: Mapping[str, Sequence[str]]) -> None:
        """Replace the members: new ones are connected in the background, the others' connections are dropped.

        Args:
            targets_by_member: `host:port` in the order in which they are dialled. A member whose targets are the same
                keeps its connection.
        """
        self._targets_by_member = {name: tuple(targets) for name, targets in targets_by_member.items() if targets}
        target_lists = dict.fromkeys(self._targets_by_member.values())
        for targets in self._servers.keys() - target_lists.keys():
            self._servers.pop(targets).scope.cancel()
        for targets in target_lists:
            if targets not in self._servers:
                self._servers[targets] = _Server(targets)
                self._group.start_soon(self._keep, self._servers[targets])

    @asynccontextmanager
    async def channel(self, name: str) -> AsyncIterator[grpc.aio.Channel]:
        """Yield the member's channel for one call; waits for the first attempts of a new or broken connection.

        Raises:
            NoAnswerError: there is none.
        """
        targets = self._targets_by_member.get(name)
        if targets is None:
            raise NoAnswerError(f"cluster {name} does not exist in estimator cache")
        server = self._servers[targets]
        await server.settled.wait()
        async with server.calls:
            if server.channel is None:
                raise NoAnswerError(server.error)
            yield server.channel

    async def _keep(self, server: _Server) -> None:
        pause_s = 0.0
        with server.scope:
            try:
                while True:
                    lasted_s = await self._hold(server)
                    pause_s = next_pause_s(pause_s, lasted_s)
                    if not pause_s:
                        server.settled = anyio.Event()
                    await anyio.sleep(pause_s)
            finally:
                server.error = server.error or "it is no longer a member"
                server.settled.set()

    async def _hold(self, server: _Server) -> float:
        """Dial the server and wait until the connection breaks. Return how long it lasted, in seconds."""
        channel = await self._dial(server)
        if channel is None:
            server.settled.set()
            return 0.0
        start_s = anyio.current_time()
        try:
            server.channel = channel
            server.settled.set()
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        except BaseException:
            await close(channel)
            raise
        finally:
            server.channel = None
            server.error = "the connection was lost"
        # A server that stops still answers the calls that run.
        self._group.start_soon(close, channel, self._dial_s)
        return anyio.current_time() - start_s

    async def _dial(self, server: _Server) -> grpc.aio.Channel | None:
        """Return a channel to the first target that can be connected, or None; then the server has the error."""
        errors: list[str] = []
        for target in server.targets:
            try:
                return await connected_channel(target, self._tls, self._dial_s)
            except NoAnswerError as error:
                errors.append(f"dial {target} error: {error}")
        server.error = ", ".join(errors)
        return None


def next_pause_s(pause_s: float, lasted_s: float) -> float:
    """Return the pause before the next attempts: none after a connection that lasted, longer after each failure.

    Args:
        pause_s: the last pause.
        lasted_s: how long the connection lasted; 0 if there was none.
    """
    if lasted_s >= _STABLE_S:
        return 0.0
    return _FIRST_PAUSE_S if lasted_s else min(max(2 * pause_s, _FIRST_PAUSE_S), _PAUSE_S_MAX)


@asynccontextmanager
async def open_connections(tls: ClientTls | None, dial_s: float = DIAL_S) -> AsyncIterator[Connections]:
    """Keep connections while the context is open. At its end all are closed."""
    async with anyio.create_task_group() as group:
        yield Connections(group, tls, dial_s)
        group.cancel_scope.cancel()
