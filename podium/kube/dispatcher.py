"""The order in which writes go out.

Owns the bound on writes in flight, the client's rate limit and the pause that a 429 asks for. Bindings go first, then
status, then Events; first come, first served within each. Never looks into a write.

Source: client-go v0.36 rest/request.go and rest/with_retry.go (429: retried up to ten times, as Retry-After says).
Differs: upstream has a client with a limit of its own for Events; here it is one dispatcher with a second bucket. The
time that a write has waited includes the wait for others in flight, not only for the client's rate limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from podium.kube.api_errors import TooManyRequests
from podium.kube.rate_limit import TokenBucket
from podium.kube.session import JSON, Method
from podium.lib.clock import Clock

_IN_FLIGHT_MAX = 32
_RETRIES_MAX = 10
_REQUEST_S_MAX = 30.0
"""How long a request may take, not counted the wait before it."""

if TYPE_CHECKING:
    _Waiter = asyncio.Future[None]


class Requester(Protocol):
    """What writes go out through: `ApiSession`, or any transport that raises as it does."""

    async def request(
        self, method: Method, path: str, body: bytes | None = None, *, content_type: str = ..., deadline_s: float = ...
    ) -> bytes:
        """Make one request and return the answer's body."""
        ...


class WriteObserver(Protocol):
    """Is told what happens to writes before they go out."""

    def throttled(self, method: str, seconds: float) -> None:
        """A write has waited so long for its turn."""
        ...

    def retried(self, method: str, status: int) -> None:
        """A write is made again after that status."""
        ...


Compose: TypeAlias = Callable[[], bytes | None]
"""Says at the last moment what to write; None if nothing is to be written any more."""


class Priority(IntEnum):
    """What goes first."""

    BINDING = 0
    STATUS = 1
    EVENT = 2


@dataclass(frozen=True, slots=True)
class DispatcherStatistics:
    """A reading of the dispatcher's gauges and counters."""

    in_flight: int
    waiting: dict[Priority, int]
    throttled_total: int


class Slot:
    """The right to make one write, for as long as the block lasts."""

    __slots__ = ("_dispatcher", "_priority")

    def __init__(self, dispatcher: Dispatcher, priority: Priority) -> None:
        self._dispatcher = dispatcher
        self._priority = priority

    async def __aenter__(self) -> None:
        """Wait for the turn."""
        if not self._dispatcher.acquire_nowait(self._priority):
            await self._dispatcher.wait_turn(self._priority)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one go."""
        self._dispatcher.release(self._priority)


class Dispatcher:
    """Lets writes through, `in_flight_max` at a time, at most half of them Events.

    Args:
        limiter: of bindings and status; None for no limit.
        event_limiter: of Events; None for no limit.

    Cost: below 5 us where a slot is free.
    Invariant: a write that is cancelled while it waits, or just as its turn comes, gives its turn to the next.
    """

    def __init__(
        self,
        session: Requester,
        clock: Clock,
        *,
        in_flight_max: int = _IN_FLIGHT_MAX,
        limiter: TokenBucket | None = None,
        event_limiter: TokenBucket | None = None,
        observer: WriteObserver | None = None,
    ) -> None:
        assert in_flight_max > 0, "no write could ever go"
        self._session = session
        self._clock = clock
        self._observer = observer
        self._in_flight = [0, 0, 0]
        self._in_flight_max = in_flight_max
        self._events_max = max(1, in_flight_max // 2)
        self._limiters = (limiter, limiter, event_limiter)
        self._waiting: tuple[deque[_Waiter], ...] = (deque(), deque(), deque())
        self._paused_until_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._throttled_total = 0

    async def send(
        self,
        priority: Priority,
        method: Method,
        path: str,
        body: bytes | Compose | None = None,
        *,
        content_type: str = JSON,
    ) -> bytes:
        """Make a write when its turn comes, and again after a 429, which did nothing.

        Args:
            body: may be composed when the turn has come.

        Raises: as `ApiSession.request`; `TooManyRequests` only after ten retries.
        """
        for _ in range(_RETRIES_MAX):
            try:
                return await self._send_once(priority, method, path, body, content_type)
            except TooManyRequests as refused:
                self.pause(refused.retry_after_s)
                if self._observer is not None:
                    self._observer.retried(method, refused.code)
        return await self._send_once(priority, method, path, body, content_type)

    def slot(self, priority: Priority) -> Slot:
        """An asynchronous context manager around one write."""
        return Slot(self, priority)

    def pause(self, seconds: float) -> None:
        """Let nothing go for so long."""
        self._throttled_total += 1
        self._paused_until_s = max(self._paused_until_s, self._clock.monotonic() + seconds)

    def statistics(self) -> DispatcherStatistics:
        """Gauges and counters now."""
        waiting = {priority: len(self._waiting[priority]) for priority in Priority}
        return DispatcherStatistics(sum(self._in_flight), waiting, self._throttled_total)

    def waiting(self, priority: Priority) -> int:
        """How many writes of that priority wait for their turn."""
        return len(self._waiting[priority])

    def acquire_nowait(self, priority: Priority) -> bool:
        """Whether a slot could be taken at once, without overtaking anyone."""
        waiting = self._waiting
        if waiting[0] or (priority and waiting[1]) or waiting[priority]:
            return False
        if not self._may_go(priority) or self._pause_left_s() > 0.0:
            return False
        limiter = self._limiters[priority]
        if limiter is not None and limiter.try_take() > 0.0:
            return False
        self._in_flight[priority] += 1
        return True

    async def wait_turn(self, priority: Priority) -> None:
        """Queue for a slot and return holding it."""
        turn: _Waiter = asyncio.get_running_loop().create_future()
        self._waiting[priority].append(turn)
        self._let_go()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(priority)
            elif turn in self._waiting[priority]:
                self._waiting[priority].remove(turn)
            raise

    def release(self, priority: Priority) -> None:
        """Give a slot back."""
        self._in_flight[priority] -= 1
        assert self._in_flight[priority] >= 0, "a slot was given back twice"
        self._let_go()

    async def _send_once(
        self,
        priority: Priority,
        method: Method,
        path: str,
        body: bytes | Compose | None,
        content_type: str,
    ) -> bytes:
        asked_s = self._clock.monotonic()
        if not self.acquire_nowait(priority):
            await self.wait_turn(priority)
        if self._observer is not None:
            self._observer.throttled(method, self._clock.monotonic() - asked_s)
        try:
            if callable(body):
                body = body()
                if body is None:
                    return b""
            return await self._session.request(method, path, body, content_type=content_type, deadline_s=_REQUEST_S_MAX)
        finally:
            self.release(priority)

    def _may_go(self, priority: Priority) -> bool:
        in_flight = self._in_flight
        if in_flight[0] + in_flight[1] + in_flight[2] >= self._in_flight_max:
            return False
        return priority is not Priority.EVENT or in_flight[2] < self._events_max

    def _pause_left_s(self) -> float:
        return self._paused_until_s - self._clock.monotonic() if self._paused_until_s else 0.0

    def _let_go(self) -> None:
        """Wake those whose turn has come; where only time is missing, come back then."""
        if not any(self._waiting):
            return
        delay_s = self._pause_left_s()
        if delay_s <= 0.0:
            delays = [self._let_go_of(priority) for priority in Priority if self._waiting[priority]]
            delay_s = min((delay for delay in delays if delay > 0.0), default=0.0)
        if delay_s > 0.0:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._let_go)

    def _let_go_of(self, priority: Priority) -> float:
        """Wake the waiters of one priority; returns the seconds until its bucket has a token, 0.0 if that is not it."""
        waiting, limiter = self._waiting[priority], self._limiters[priority]
        while waiting and self._may_go(priority):
            if waiting[0].cancelled():
                waiting.popleft()
                continue
            delay_s = 0.0 if limiter is None else limiter.try_take()
            if delay_s > 0.0:
                return delay_s
            self._in_flight[priority] += 1
            waiting.popleft().set_result(None)
        return 0.0
