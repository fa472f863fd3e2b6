"""Keeps a connection to the estimator server of each member.

One task per member: it dials the member's addresses in order, waits until the connection breaks, and dials again.
A question to a member without a connection fails at once, unless its first attempts are still under way.

Source: karmada pkg/estimator/client/cache.go and service.go, v1.18.
Differs: members are dialled at once, not one after another. A broken connection is dialled again at all addresses of
its member. A member that is skipped loses the connection that it had.
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

_STABLE_S: Final = 1.0
_FIRST_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 30.0


@dataclass(slots=True, eq=False)
class _Member:
    targets: tuple[str, ...]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    channel: grpc.aio.Channel | None = None
    error: str = ""
    settled: anyio.Event = field(default_factory=anyio.Event)


class Connections:
    """The connections to members. `open_connections` makes it.

    Args:
        group: runs the members' tasks.
        tls: None for plain text.
        dial_s: for connecting to one address.
    """

    def __init__(self, group: TaskGroup, tls: ClientTls | None, dial_s: float) -> None:
        self._group = group
        self._tls = tls
        self._dial_s = dial_s
        self._members: dict[str, _Member] = {}

    def follow(self, targets_by_member: Mapping[str, Sequence[str]]) -> None:
        """Replace the members: new ones are connected in the background, the others' connections are dropped.

        Args:
            targets_by_member: `host:port` in the order in which they are dialled. A member whose targets are the same
                keeps its connection.
        """
        for name, member in list(self._members.items()):
            if tuple(targets_by_member.get(name, ())) != member.targets:
                del self._members[name]
                member.scope.cancel()
        for name, targets in targets_by_member.items():
            if targets and name not in self._members:
                self._members[name] = _Member(tuple(targets))
                self._group.start_soon(self._keep, self._members[name])

    async def channel(self, name: str) -> grpc.aio.Channel:
        """Return the member's channel; waits for the first attempts of a new or broken connection.

        Raises:
            NoAnswerError: there is none.
        """
        member = self._members.get(name)
        if member is None:
            raise NoAnswerError(f"cluster {name} does not exist in estimator cache")
        await member.settled.wait()
        if member.channel is None:
            raise NoAnswerError(member.error)
        return member.channel

    async def _keep(self, member: _Member) -> None:
        pause_s = 0.0
        with member.scope:
            try:
                while True:
                    lasted_s = await self._hold(member)
                    pause_s = next_pause_s(pause_s, lasted_s)
                    if not pause_s:
                        member.settled = anyio.Event()
                    await anyio.sleep(pause_s)
            finally:
                member.error = member.error or "its member is gone"
                member.settled.set()

    async def _hold(self, member: _Member) -> float:
        """Dial the member and wait until the connection breaks. Return how long it lasted, in seconds."""
        channel = await self._dial(member)
        if channel is None:
            member.settled.set()
            return 0.0
        start_s = anyio.current_time()
        try:
            member.channel = channel
            member.settled.set()
            await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)
        except BaseException:
            await close(channel)
            raise
        finally:
            member.channel = None
            member.error = "the connection was lost"
        # A server that stops still answers the calls that run.
        self._group.start_soon(close, channel, self._dial_s)
        return anyio.current_time() - start_s

    async def _dial(self, member: _Member) -> grpc.aio.Channel | None:
        """Return a channel to the first target that can be connected, or None; then the member has the error."""
        errors: list[str] = []
        for target in member.targets:
            try:
                return await connected_channel(target, self._tls, self._dial_s)
            except NoAnswerError as error:
                errors.append(f"dial {target} error: {error}")
        member.error = ", ".join(errors)
        return None


def next_pause_s(pause_s: float, lasted_s: float) -> float:
    """Return the pause before the next attempts: 0 after a connection that lasted, otherwise twice the last pause.

    Args:
        pause_s: the last pause.
        lasted_s: how long the connection lasted; 0 if there was none.
    """
    if lasted_s >= _STABLE_S:
        return 0.0
    return min(max(2 * pause_s, _FIRST_PAUSE_S), _PAUSE_S_MAX)


@asynccontextmanager
async def open_connections(tls: ClientTls | None, dial_s: float = DIAL_S) -> AsyncIterator[Connections]:
    """Keep connections while the context is open. At its end all are closed."""
    async with anyio.create_task_group() as group:
        yield Connections(group, tls, dial_s)
        group.cancel_scope.cancel()
