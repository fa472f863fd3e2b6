from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from podium.kube.api_errors import TooManyRequests
from podium.kube.dispatcher import Dispatcher, Priority
from podium.kube.rate_limit import TokenBucket
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

BINDING, STATUS, EVENT = Priority


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Wire:
    """Takes a second over each request, and refuses those it was told to refuse."""

    def __init__(self) -> None:
        self.started: list[tuple[float, str]] = []
        self.in_flight = 0
        self.in_flight_max = 0
        self.refusals: list[float] = []

    async def request(self, method: str, path: str, body: bytes | None = None, **options: Any) -> bytes:
        self.started.append((asyncio.get_running_loop().time(), path))
        if self.refusals:
            raise TooManyRequests("later", retry_after_s=self.refusals.pop(0))
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            await anyio.sleep(1.0)
        finally:
            self.in_flight -= 1
        return path.encode()


async def test_no_more_are_in_flight_than_allowed_and_all_get_through() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=4)
    async with anyio.create_task_group() as group:
        for index in range(20):
            group.start_soon(dispatcher.send, BINDING, "POST", f"/{index}")
    assert wire.in_flight_max == 4
    assert [path for _, path in wire.started] == [f"/{index}" for index in range(20)]
    assert asyncio.get_running_loop().time() == pytest.approx(5.0)
    assert dispatcher.statistics().in_flight == 0


async def test_bindings_go_before_status_and_status_before_events() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.send, EVENT, "POST", "/first")
        await checkpoint()
        for priority in (EVENT, STATUS, BINDING, EVENT, BINDING):
            group.start_soon(dispatcher.send, priority, "POST", f"/{priority.name}")
    assert [path for _, path in wire.started] == ["/first", "/BINDING", "/BINDING", "/STATUS", "/EVENT", "/EVENT"]


async def test_events_never_take_more_than_half_of_the_slots() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=4)
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(dispatcher.send, EVENT, "POST", "/event")
        await anyio.sleep(0.5)
        assert wire.in_flight == 2
        group.start_soon(dispatcher.send, BINDING, "POST", "/binding")
        await checkpoint()
        await checkpoint()
        assert wire.started[-1] == (0.5, "/binding")


async def test_the_rate_limit_spreads_writes_and_a_late_binding_overtakes_waiting_status() -> None:
    wire, clock = Wire(), LoopClock()
    dispatcher = Dispatcher(wire, clock, limiter=TokenBucket(2.0, 1, clock))
    async with anyio.create_task_group() as group:
        for index in range(3):
            group.start_soon(dispatcher.send, STATUS, "PATCH", f"/status{index}")
        await anyio.sleep(0.1)
        group.start_soon(dispatcher.send, BINDING, "POST", "/binding")
    times_s = [when_s for when_s, _ in wire.started]
    assert times_s == pytest.approx([0.0, 0.5, 1.0, 1.5])
    assert [path for _, path in wire.started] == ["/status0", "/binding", "/status1", "/status2"]


async def test_events_have_a_limit_of_their_own() -> None:
    wire, clock = Wire(), LoopClock()
    dispatcher = Dispatcher(
        wire, clock, limiter=TokenBucket(0.1, 1, clock), event_limiter=TokenBucket(100.0, 10, clock)
    )
    async with anyio.create_task_group() as group:
        for index in range(2):
            group.start_soon(dispatcher.send, BINDING, "POST", f"/binding{index}")
        for index in range(3):
            group.start_soon(dispatcher.send, EVENT, "POST", f"/event{index}")
    assert [path for when_s, path in wire.started if when_s == 0.0] == ["/binding0", "/event0", "/event1", "/event2"]
    last_s, last = wire.started[-1]
    assert last == "/binding1"
    assert last_s == pytest.approx(10.0)


async def test_429_pauses_everything_for_as_long_as_was_asked_and_the_write_is_made_again() -> None:
    wire = Wire()
    wire.refusals = [5.0]
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.send, BINDING, "POST", "/refused")
        await checkpoint()
        await checkpoint()
        group.start_soon(dispatcher.send, BINDING, "POST", "/other")
    assert [when_s for when_s, _ in wire.started] == pytest.approx([0.0, 5.0, 5.0])
    assert dispatcher.statistics().throttled_total == 1


async def test_a_write_refused_eleven_times_is_given_up() -> None:
    wire = Wire()
    wire.refusals = [1.0] * 100
    dispatcher = Dispatcher(wire, LoopClock())
    with pytest.raises(TooManyRequests):
        await dispatcher.send(BINDING, "POST", "/x")
    assert len(wire.started) == 11
    assert dispatcher.statistics().in_flight == 0


async def test_a_cancelled_waiter_gives_its_turn_to_the_next() -> None:
    dispatcher = Dispatcher(Wire(), LoopClock(), in_flight_max=1)
    order: list[str] = []

    async def hold(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            async with dispatcher.slot(BINDING):
                order.append(name)
                await anyio.sleep(1.0)

    scopes = [anyio.CancelScope() for _ in range(4)]
    async with anyio.create_task_group() as group:
        for name, scope in zip("abcd", scopes, strict=True):
            group.start_soon(hold, name, scope)
        await anyio.sleep(0.5)
        scopes[1].cancel()
        await anyio.sleep(0.5 - 1e-6)
        assert dispatcher.statistics().waiting[BINDING] == 2
    assert order == ["a", "c", "d"]
    assert dispatcher.statistics().in_flight == 0


async def test_a_waiter_cancelled_just_as_its_turn_comes_gives_the_turn_on() -> None:
    dispatcher = Dispatcher(Wire(), LoopClock(), in_flight_max=1)
    assert dispatcher.acquire_nowait(BINDING)
    first = asyncio.ensure_future(dispatcher.wait_turn(BINDING))
    second = asyncio.ensure_future(dispatcher.wait_turn(BINDING))
    await asyncio.sleep(0)
    dispatcher.release(BINDING)
    first.cancel()
    await second
    assert first.cancelled()
    assert dispatcher.statistics().in_flight == 1
    dispatcher.release(BINDING)


async def test_nobody_overtakes_those_who_wait_with_the_same_or_a_higher_priority() -> None:
    dispatcher = Dispatcher(Wire(), LoopClock(), in_flight_max=2)
    dispatcher.pause(1.0)
    waiting = asyncio.ensure_future(dispatcher.wait_turn(STATUS))
    await asyncio.sleep(0)
    assert not dispatcher.acquire_nowait(STATUS)
    assert not dispatcher.acquire_nowait(EVENT)
    await waiting
    assert asyncio.get_running_loop().time() == pytest.approx(1.0)
    assert dispatcher.acquire_nowait(EVENT)


async def test_waits_and_retries_are_reported() -> None:
    told: list[tuple[str, str, float]] = []

    class Observer:
        def throttled(self, method: str, seconds: float) -> None:
            told.append(("throttled", method, seconds))

        def retried(self, method: str, status: int) -> None:
            told.append(("retried", method, status))

    wire, clock = Wire(), LoopClock()
    wire.refusals = [3.0]
    dispatcher = Dispatcher(wire, clock, limiter=TokenBucket(1.0, 2, clock), observer=Observer())
    await dispatcher.send(BINDING, "POST", "/a")
    assert told == [("throttled", "POST", 0.0), ("retried", "POST", 429), ("throttled", "POST", pytest.approx(3.0))]


async def test_a_body_may_be_composed_when_the_turn_has_come_and_be_nothing_any_more() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    composed: list[float] = []

    def compose() -> bytes | None:
        composed.append(asyncio.get_running_loop().time())
        return b"{}" if len(composed) == 1 else None

    async with anyio.create_task_group() as group:
        for path in ("/first", "/second"):
            group.start_soon(dispatcher.send, STATUS, "PATCH", path, compose)
    assert [path for _, path in wire.started] == ["/first"]
    assert composed == pytest.approx([0.0, 1.0])
    assert dispatcher.statistics().in_flight == 0
