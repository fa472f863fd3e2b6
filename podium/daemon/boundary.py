"""All outside input enters the scheduling path here: time, chance, watches, answers, and the order of its tasks.

Owns nothing: by default everything is handed through as it is, at no cost. A recorder notes what passes; a replay puts
what was recorded in its place. What does not pass here cannot change a decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Protocol, TypeAlias, TypeVar

from podium.binder import ApiClient
from podium.client.dispatcher import Dispatcher
from podium.client.informer import Informer
from podium.lib.clock import Clock
from podium.server.supervision import Tasks

T = TypeVar("T")

Compute: TypeAlias = Callable[[Callable[[], None]], Awaitable[None]]
"""Has work done that takes long, and waits until it is done."""


class StoresState(Protocol):
    """Says when scheduling may use the informers' stores; `podium.client.consistency.Consistency` implements it."""

    @property
    def changes(self) -> int:
        """The number of times that the replacement of a store has begun."""

    @property
    def is_consistent(self) -> bool:
        """True if scheduling may use the stores now."""

    def wait_s(self) -> float:
        """Return the longest time that scheduling will still wait for new lists."""


class Boundary:
    """Hands everything through. A subclass overrides what it wants to see or replace."""

    writes_events = True
    """True if Events are written. They cannot change a decision."""

    def clock(self, clock: Clock) -> Clock:
        """Return the clock of what decides or waits. What is only measured or reported is read elsewhere."""
        return clock

    def random(self, random: Random) -> Random:
        """Return the random source of everything that decides."""
        return random

    def api_client(self, dispatcher: Dispatcher, clock: Clock) -> ApiClient:
        """Return the client of all writes except Events."""
        return ApiClient(dispatcher, clock)

    def stores(self, state: StoresState) -> StoresState:
        """Return the state of the informers' stores, as the scheduling loop reads it."""
        return state

    def reading(self, read: Callable[[], T]) -> Callable[[], T]:
        """Return a function whose result, a plain value, depends on what is outside."""
        return read

    async def compute(self, work: Callable[[], None]) -> None:
        """Have work done in a thread. An override must wait once, too, so that tasks go on in the same order."""
        await asyncio.get_running_loop().run_in_executor(None, work)

    def signal(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Return a callback that is called from outside."""
        return tell

    def add_informer(self, informer: Informer[Any]) -> None:
        """Add a new informer, before it has handlers."""

    def tasks(self, tasks: Tasks) -> Tasks:
        """Return the tasks of the scheduling path, about to be started on the running loop."""
        return tasks

    def stopping(self) -> None:
        """Note that scheduling is about to stop."""
