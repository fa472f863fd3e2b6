"""The dispatcher: the order in which writes to the API server are sent.

Owns the limit on writes in flight, its shares, the client's rate limit and the waits after a 429. Bindings have the
highest priority, then status patches, then Events: a less important write is not sent while a more important one only
waits for a free slot on a server that answers promptly. Within a priority, the writes of one kind in one namespace
share a lane, and lanes take turns; within a lane the most urgent write goes first, then the oldest. Never looks into a
write.

A lane may have a quarter as many writes in flight as there are free slots: a single lane gets a fifth of all slots,
several lanes get equal shares. So a new lane finds slots even if many namespaces wait for slow answers.

After a 429 the refused write waits; if other objects of its lane are refused too, the lane waits. If the refusal is
server-wide, all writes wait that are not more important than the refused one.

Source: client-go v0.36 rest/request.go and rest/with_retry.go (429: retried up to ten times, as Retry-After says).
Differs: upstream has a separate client with its own limit for Events; here one dispatcher has a second bucket. The wait
time of a write includes the wait for a slot, not only for the client's rate limit. Upstream does not limit writes in
flight, and a refusal only delays the refused write.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol, TypeAlias

from podium.client.observer import RequestObserver
from podium.client.rate_limit import TokenBucket
from podium.client.requests import JSON, Method
from podium.client.write_lanes import SLOW_S, SLOW_WAITING_MAX, Lane
from podium.lib.clock import Clock
from podium.objects.api_errors import ApiError, TooManyRequests

IN_FLIGHT_MAX: Final = 160
_SHARE: Final = 4
_LANES_KEPT: Final = 1000
RETRIES_MAX: Final = 10
"""How often a write is sent again after a 429."""
_REQUEST_S_MAX: Final = 15.0
"""How long a request may take, without the wait before it. After that the server is slow or the connection is dead; the
write may still take effect, which is looked up on another connection."""


class Requester(Protocol):
    """The transport of requests: `ApiSession`, or another one that raises the same errors."""

    async def request(
        self,
        method: Method,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = ...,
        deadline_s: float = ...,
        answer_bytes_max: int | None = ...,
    ) -> bytes:
        """Make one request and return the answer's body."""
        ...


Compose: TypeAlias = Callable[[], bytes | None]
"""Makes the body right before sending; None if the write is no longer needed."""


class Priority(IntEnum):
    """The priority of a write; lower values are sent first."""

    BINDING = 0
    STATUS = 1
    EVENT = 2


@dataclass(frozen=True, slots=True)
class DispatcherStatistics:
    """A reading of the dispatcher's gauges and counters."""

    in_flight: int
    waiting: dict[Priority, int]
    throttled_total: int


_UNOBSERVED: Final = RequestObserver()


class Dispatcher:
    """Sends writes, at most `in_flight_max` at a time, of which at most three quarters are status patches and Events.

    Args:
        limiter: of bindings and status; None for no limit.
        event_limiter: of Events; None for no limit.

    Cost: below 2 us if a slot is free.
    Invariant: a write that is cancelled while it waits, or just as its turn comes, passes its turn on to the next.
    """

    def __init__(
        self,
        session: Requester,
        clock: Clock,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        limiter: TokenBucket | None = None,
        event_limiter: TokenBucket | None = None,
        observer: RequestObserver = _UNOBSERVED,
    ) -> None:
        assert in_flight_max > 0, "in_flight_max must be positive"
        self._session = session
        self._clock = clock
        self._observer = observer
        self._in_flight_max = in_flight_max
        self._free = [in_flight_max, max(1, in_flight_max * 3 // 4), max(1, in_flight_max // 2)]
        self._limiters = (limiter, limiter, event_limiter)
        self._needs_token = [False, False, False]
        self._lanes: tuple[dict[tuple[str, str], Lane], ...] = ({}, {}, {})
        self._waiting: tuple[deque[Lane], ...] = (deque(), deque(), deque())
        self._paused_until_s = [0.0, 0.0, 0.0]
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_s = math.inf
        self._throttled_total = 0

    async def send(
        self,
        priority: Priority,
        method: Method,
        path: str,
        body: bytes | Compose | None = None,
        *,
        content_type: str = JSON,
        namespace: str = "",
        urgency: int | None = None,
        retries_max: int = RETRIES_MAX,
    ) -> bytes:
        """Send a write when its turn comes, and retry it after a 429, which had no effect.

        Args:
            body: the bytes, or a function that makes them when the turn has come.
            namespace: of the object; it determines the lane.
            urgency: a higher value goes earlier among the writes that wait in the same lane.
            retries_max: how often it is retried.

        Raises: as `ApiSession.request`; `TooManyRequests` only after these retries.
        """
        lane = self._lanes[priority].get((method, namespace)) or self._new_lane(priority, method, namespace)
        for retries_left in range(retries_max, -1, -1):
            asked_s = started_s = self._clock.monotonic()
            if not self._enter(lane, asked_s):
                await self._wait_turn(lane, urgency)
                started_s = self._clock.monotonic()
            # Here, and not in a coroutine for each try: nearly all writes need only one.
            try:
                self._observer.throttled(method, started_s - asked_s)
                content = body() if callable(body) else body
                if content is None and body is not None:
                    return b""
                answer = await self._session.request(
                    method, path, content, content_type=content_type, deadline_s=_REQUEST_S_MAX
                )
                if lane.refused:
                    self._accept(lane)
                return answer
            except TooManyRequests as refusal:
                # Before the slot is released: the next write of the lane would be refused as well.
                self._refuse(lane, path, refusal)
                if not retries_left:
                    raise
                self._observer.retried(method, refusal.code)
                pause_s = None if refusal.is_server_wide else refusal.retry_after_s
            except ApiError:
                self._accept(lane)
                raise
            finally:
                lane.progress_s = ended_s = self._clock.monotonic()
                lane.was_slow = ended_s - started_s > SLOW_S
                self._leave(lane)
            if pause_s is not None:
                await asyncio.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def statistics(self) -> DispatcherStatistics:
        """Return the current gauges and counters."""
        waiting = {priority: self.waiting(priority) for priority in Priority}
        return DispatcherStatistics(self._in_flight_max - self._free[0], waiting, self._throttled_total)

    def waiting(self, priority: Priority) -> int:
        """Return how many writes of that priority wait for their turn."""
        return sum(len(lane.waiting) for lane in self._waiting[priority])

    def backlog(self) -> int:
        """Return how many bindings and status patches wait for others to be answered. Too many pause scheduling.

        Writes in slow lanes do not delay others, so they only count if there are very many.
        """
        bindings, statuses = self._waiting[0], self._waiting[1]
        if not bindings and not statuses:
            return 0
        now_s, prompt, slow = self._clock.monotonic(), 0, 0
        for lanes in (bindings, statuses):
            for lane in lanes:
                if lane.is_slow(now_s):
                    slow += len(lane.waiting)
                else:
                    prompt += len(lane.waiting)
        return prompt + max(0, slow - SLOW_WAITING_MAX)

    # ------------------------------------------------------------ one write

    def _enter(self, lane: Lane, now_s: float) -> bool:
        """Take a slot at once if that overtakes no waiting write; return whether it was taken."""
        priority, in_flight, free = lane.priority, lane.in_flight, self._free
        if (
            lane.waiting
            or in_flight >= lane.limit
            or in_flight * _SHARE >= (min(free[: priority + 1]) if priority else free[0])
            or (priority and (self._waiting[0] or self._waiting[priority - 1]))
            or now_s < self._paused_until_s[priority]
        ):
            return False
        limiter = self._limiters[priority]
        if limiter is not None:
            needs = self._needs_token
            if (needs[0] and priority < 2) or needs[priority] or limiter.try_take() > 0.0:
                return False
        self._take(lane, now_s)
        return True

    def _take(self, lane: Lane, now_s: float) -> None:
        """Take a slot. A write also takes one from those that more important writes leave to its priority."""
        if not lane.in_flight:
            lane.progress_s = now_s
        lane.in_flight += 1
        free = self._free
        free[0] -= 1
        if lane.priority:
            free[1] -= 1
            if lane.priority == Priority.EVENT:
                free[2] -= 1

    def _leave(self, lane: Lane) -> None:
        """Release a slot."""
        lane.in_flight -= 1
        assert lane.in_flight >= 0, "a slot was released twice"
        free = self._free
        free[0] += 1
        if lane.priority:
            free[1] += 1
            if lane.priority == Priority.EVENT:
                free[2] += 1
        bindings, statuses, events = self._waiting
        if bindings or statuses or events:
            self._let_go()

    def _new_lane(self, priority: Priority, method: Method, namespace: str) -> Lane:
        lanes = self._lanes[priority]
        if len(lanes) >= _LANES_KEPT:
            for key in [key for key, lane in lanes.items() if not lane.in_flight and not lane.waiting]:
                del lanes[key]
        lane = lanes[method, namespace] = Lane(int(priority), self._in_flight_max)
        return lane

    # ------------------------------------------------------------ refusals

    def _refuse(self, lane: Lane, path: str, refusal: TooManyRequests) -> None:
        """Hold back the writes that would get the same 429."""
        self._throttled_total += 1
        now_s = self._clock.monotonic()
        if refusal.is_server_wide:
            for priority in range(lane.priority, len(Priority)):
                self._paused_until_s[priority] = max(self._paused_until_s[priority], now_s + refusal.retry_after_s)
            return
        gap_s = lane.refuse(path, refusal.retry_after_s, now_s)
        if gap_s > 0.0:
            asyncio.get_running_loop().call_later(gap_s, self._probe, lane)

    def _probe(self, lane: Lane) -> None:
        lane.probe(self._clock.monotonic())
        self._let_go()

    def _accept(self, lane: Lane) -> None:
        lane.accept()
        self._let_go()

    # ------------------------------------------------------------ turns

    async def _wait_turn(self, lane: Lane, urgency: int | None) -> None:
        """Queue for a slot and return holding it."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not lane.waiting:
            self._waiting[lane.priority].append(lane)
        lane.add(turn, urgency or 0)
        self._let_go()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._leave(lane)
            elif lane.remove(turn) and not lane.waiting:
                self._waiting[lane.priority].remove(lane)
            raise

    def _let_go(self) -> None:
        """Wake the waiters whose turn has come; if they only wait for time to pass, set a timer."""
        now_s, delay_s = self._clock.monotonic(), 0.0
        for priority, lanes in enumerate(self._waiting):
            if lanes:
                missing_s = self._paused_until_s[priority] - now_s
                if missing_s <= 0.0:
                    missing_s = self._let_go_of(priority, now_s)
                if missing_s > 0.0:
                    delay_s = min(delay_s or missing_s, missing_s)
                elif self._is_held_up(priority, now_s):
                    delay_s = min(delay_s or SLOW_S, SLOW_S)
                    break
            else:
                self._needs_token[priority] = False
        if delay_s > 0.0 and now_s + delay_s < self._wakes_s:
            if self._timer is not None:
                self._timer.cancel()
            self._wakes_s = now_s + delay_s
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._timer, self._wakes_s = None, math.inf
        self._let_go()

    def _is_held_up(self, priority: int, now_s: float) -> bool:
        """Return whether writes of that priority wait for a slot only, while the answers to others are prompt."""
        free = min(self._free[: priority + 1])
        return any(
            lane.waiting and lane.in_flight * _SHARE >= free and not lane.is_slow(now_s)
            for lane in self._waiting[priority]
        )

    def _let_go_of(self, priority: int, now_s: float) -> float:
        """Wake the waiters of one priority, one of each lane in turn.

        Returns: the seconds until its bucket has a token; 0.0 if they do not wait for a token.
        """
        lanes, limiter = self._waiting[priority], self._limiters[priority]
        self._needs_token[priority] = False
        passed_over = 0
        while passed_over < len(lanes) and (free := min(self._free[: priority + 1])) > 0:
            lane = lanes[0]
            if lane.in_flight >= lane.limit or lane.in_flight * _SHARE >= free:
                lanes.rotate(-1)
                passed_over += 1
                continue
            passed_over = 0
            is_wanted = lane.is_next_wanted()
            delay_s = limiter.try_take() if is_wanted and limiter is not None else 0.0
            if delay_s > 0.0:
                self._needs_token[priority] = True
                return delay_s
            turn = lane.pop()
            if lane.waiting:
                lanes.rotate(-1)
            else:
                lanes.popleft()
            if is_wanted:
                self._take(lane, now_s)
                turn.set_result(None)
        return 0.0
