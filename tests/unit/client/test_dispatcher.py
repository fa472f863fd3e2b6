from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.lowlevel import checkpoint

from podium.client.dispatcher import Dispatcher, Priority
from podium.client.observer import RequestObserver
from podium.client.rate_limit import TokenBucket
from podium.objects.api_errors import NotFound, TooManyRequests
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

BINDING, STATUS, EVENT = Priority


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Wire:
    """Takes a second over each request, or as long as `seconds` says, and refuses those it was told to refuse.

    `refused` says for how long to wait with requests for a path, for ever.
    """

    def __init__(self) -> None:
        self.started: list[tuple[float, str]] = []
        self.ended: dict[str, float] = {}
        self.in_flight = 0
        self.in_flight_max = 0
        self.refusals: list[float] = []
        self.refused: Callable[[str], float | None] = lambda path: None
        self.seconds: Callable[[str], float] = lambda path: 1.0
        self.is_server_wide = False

    async def request(self, method: str, path: str, body: bytes | None = None, **options: Any) -> bytes:
        self.started.append((asyncio.get_running_loop().time(), path))
        retry_after_s = self.refusals.pop(0) if self.refusals else self.refused(path)
        if retry_after_s is not None:
            error = TooManyRequests("later", retry_after_s=retry_after_s)
            error.is_server_wide = self.is_server_wide
            raise error
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        try:
            await anyio.sleep(self.seconds(path))
        finally:
            self.in_flight -= 1
        self.ended[path] = asyncio.get_running_loop().time()
        return path.encode()

    def started_at(self, path: str) -> list[float]:
        return [when_s for when_s, path_sent in self.started if path_sent == path]


async def hand_over(group: anyio.abc.TaskGroup, dispatcher: Dispatcher, namespace: str, count: int) -> None:
    """Give so many bindings of a namespace to the dispatcher."""
    for index in range(count):
        group.start_soon(send_binding, dispatcher, namespace, f"/{namespace}/{index}")
    await checkpoint()


async def send_binding(dispatcher: Dispatcher, namespace: str, path: str) -> None:
    await dispatcher.send(BINDING, "POST", path, namespace=namespace)


async def test_no_more_of_one_namespace_are_in_flight_than_allowed_and_all_get_through() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=20)
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


@pytest.mark.parametrize(("answer_s", "event_s"), [(0.1, 0.5), (2.0, 0.5)], ids=["prompt", "slow"])
async def test_events_wait_for_bindings_that_wait_for_slots_unless_their_answers_are_slow(
    answer_s: float, event_s: float
) -> None:
    wire = Wire()
    wire.seconds = lambda path: answer_s
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=20)
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "busy", 24)
        group.start_soon(dispatcher.send, EVENT, "POST", "/event")
    assert wire.started_at("/event") == [pytest.approx(event_s)]
    assert asyncio.get_running_loop().time() == pytest.approx(6 * answer_s)


async def test_events_and_statuses_leave_slots_for_bindings_however_slow_and_many_their_namespaces_are() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=16)
    async with anyio.create_task_group() as group:
        for index in range(100):
            for priority in (EVENT, STATUS):
                send = partial(dispatcher.send, namespace=str(index))
                group.start_soon(send, priority, "POST", f"/{priority.name}/{index}")
        await anyio.sleep(0.5)
        assert wire.in_flight == 12
        group.start_soon(dispatcher.send, BINDING, "POST", "/binding")
        await checkpoint()
        await checkpoint()
        assert wire.started[-1] == (0.5, "/binding")
        group.cancel_scope.cancel()


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


# ---------------------------------------------------------------- 429


async def test_a_refused_write_waits_for_itself_and_the_others_of_its_namespace_hardly_at_all() -> None:
    wire = Wire()
    wire.refused = lambda path: 60.0 if path == "/a/0" else None
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 1)
        await anyio.sleep(1.0)
        await hand_over(group, dispatcher, "a", 20)
        await hand_over(group, dispatcher, "b", 20)
        await anyio.sleep(30.0)
        # The first of the namespace tries alone; then all others go.
        assert max(wire.ended[f"/a/{index}"] for index in range(1, 20)) <= 1.0 + 2.0
        assert max(wire.ended[f"/b/{index}"] for index in range(20)) == pytest.approx(2.0)
        assert wire.started_at("/a/0")[:2] == [0.0, 1.0]
        wire.refused = lambda path: None
    assert wire.ended["/a/0"] == pytest.approx(62.0)
    assert dispatcher.statistics().throttled_total == 2


async def test_a_refused_namespace_is_tried_by_ever_fewer_writes_and_holds_no_other_up() -> None:
    wire = Wire()
    wire.refused = lambda path: 60.0 if path.startswith("/a/") else None
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 200)
        await anyio.sleep(0.1)
        await hand_over(group, dispatcher, "b", 20)
        await anyio.sleep(40.0)
        assert len(wire.ended) == 20
        assert max(wire.ended.values()) == pytest.approx(1.1)
        assert len([path for _, path in wire.started if path.startswith("/a/")]) < 10
        wire.refused = lambda path: None
        await anyio.sleep(100.0)
        assert len(wire.ended) == 220


async def test_a_few_refused_objects_delay_the_others_of_their_namespace_by_seconds_only() -> None:
    wire = Wire()
    wire.refused = lambda path: 60.0 if path in {"/a/0", "/a/1", "/a/2"} else None
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 3)
        await anyio.sleep(0.1)
        await hand_over(group, dispatcher, "a", 10)
        await anyio.sleep(20.0)
        assert max(wire.ended[f"/a/{index}"] for index in range(3, 10)) <= 5.0
        group.cancel_scope.cancel()


async def test_a_refused_event_delays_no_binding_and_no_event_elsewhere() -> None:
    wire = Wire()
    wire.refused = lambda path: 60.0 if path.startswith("/event/a") else None
    dispatcher = Dispatcher(wire, LoopClock())
    for is_server_wide in (False, True):
        wire.is_server_wide = is_server_wide
        wire.ended.clear()
        begun_s = asyncio.get_running_loop().time()
        async with anyio.create_task_group() as group:
            for index in range(40):
                group.start_soon(partial(dispatcher.send, namespace="a"), EVENT, "POST", f"/event/a/{index}")
            await anyio.sleep(0.1)
            await hand_over(group, dispatcher, "a", 10)
            if not is_server_wide:
                group.start_soon(partial(dispatcher.send, namespace="b"), EVENT, "POST", "/event/b")
            await anyio.sleep(10.0)
            assert max(wire.ended.values()) - begun_s == pytest.approx(1.1)
            assert len(wire.ended) == (10 if is_server_wide else 11)
            group.cancel_scope.cancel()


async def test_what_the_whole_server_refuses_is_waited_out_by_all_that_is_no_more_important() -> None:
    wire = Wire()
    wire.is_server_wide = True
    wire.refusals = [5.0]
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.send, STATUS, "PATCH", "/refused")
        await checkpoint()
        await checkpoint()
        for priority in Priority:
            group.start_soon(partial(dispatcher.send, namespace="b"), priority, "POST", f"/{priority.name}")
    assert sorted(wire.started) == [(0.0, "/BINDING"), (0.0, "/refused"), *((5.0, path) for path in LATER)]
    assert dispatcher.statistics().throttled_total == 1


LATER = ("/EVENT", "/STATUS", "/refused")


async def test_a_write_that_is_answered_by_another_error_ends_the_refusal_of_its_lane() -> None:
    wire = Wire()
    wire.refusals = [60.0]
    dispatcher = Dispatcher(wire, LoopClock())

    def fail() -> bytes:
        raise NotFound("gone")

    async with anyio.create_task_group() as group:
        group.start_soon(dispatcher.send, BINDING, "POST", "/refused")
        await anyio.sleep(0.1)
        with pytest.raises(NotFound):
            await dispatcher.send(BINDING, "POST", "/gone", fail)
        for index in range(5):
            group.start_soon(dispatcher.send, BINDING, "POST", f"/{index}")
        await anyio.sleep(0.1)
        assert wire.in_flight == 5


async def test_a_write_refused_eleven_times_is_given_up() -> None:
    wire = Wire()
    wire.refusals = [1.0] * 100
    dispatcher = Dispatcher(wire, LoopClock())
    with pytest.raises(TooManyRequests):
        await dispatcher.send(BINDING, "POST", "/x")
    assert len(wire.started) == 11
    assert dispatcher.statistics().in_flight == 0


# ---------------------------------------------------------------- shares


async def test_ten_bindings_elsewhere_go_at_once_beside_a_hundred_slow_ones() -> None:
    wire = Wire()
    wire.seconds = lambda path: 10.0 if path.startswith("/slow") else 0.1
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "slow", 100)
        await hand_over(group, dispatcher, "quick", 10)
        await anyio.sleep(1.0)
        assert len(wire.ended) == 10
        await anyio.sleep(20.0)
        await hand_over(group, dispatcher, "later", 10)
    assert max(wire.ended[f"/later/{index}"] for index in range(10)) == pytest.approx(21.1)


async def test_a_newcomer_goes_soon_beside_fifteen_slow_namespaces() -> None:
    wire = Wire()
    wire.seconds = lambda path: 10.0 if path.startswith("/slow") else 0.1
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        for index in range(15):
            await hand_over(group, dispatcher, f"slow-{index}", 100)
        await anyio.sleep(1.0)
        await hand_over(group, dispatcher, "quick", 10)
        await anyio.sleep(1.5)
        assert len(wire.ended) == 10
        assert 140 < wire.in_flight_max <= 160
        group.cancel_scope.cancel()


async def test_lanes_take_turns_where_slots_are_few() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 4)
        await hand_over(group, dispatcher, "b", 2)
    assert [path for _, path in wire.started] == ["/a/0", "/a/1", "/b/0", "/a/2", "/b/1", "/a/3"]


async def test_the_most_urgent_of_a_lane_goes_first_and_then_the_first_that_came() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    async with anyio.create_task_group() as group:
        for name, urgency in (("/first", None), ("/b", None), ("/c", 5), ("/d", 0), ("/e", 5)):
            group.start_soon(partial(dispatcher.send, urgency=urgency), BINDING, "POST", name)
            await checkpoint()
    assert [path for _, path in wire.started] == ["/first", "/c", "/e", "/b", "/d"]


async def test_what_waits_in_a_slow_lane_does_not_count_as_backlog_unless_it_is_very_much() -> None:
    wire = Wire()
    wire.seconds = lambda path: 0.3 if path.startswith("/quick") else 10.0
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=50)
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "slow", 60)
        await hand_over(group, dispatcher, "quick", 58)
        assert dispatcher.backlog() == dispatcher.waiting(BINDING) == 50 + 50
        await anyio.sleep(0.55)
        assert dispatcher.backlog() == 58 - 8 - 8
        await anyio.sleep(9.5)
        # The lane is known as slow, whatever has come meanwhile.
        await hand_over(group, dispatcher, "slow", 1000)
        assert dispatcher.waiting(BINDING) == 1040
        assert dispatcher.backlog() == 40
        group.cancel_scope.cancel()


async def test_a_refused_lane_does_not_count_as_backlog() -> None:
    wire = Wire()
    wire.refused = lambda path: 30.0
    dispatcher = Dispatcher(wire, LoopClock())
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 100)
        await anyio.sleep(0.1)
        assert dispatcher.waiting(BINDING) > 0
        assert dispatcher.backlog() == 0
        group.cancel_scope.cancel()


async def test_a_namespace_that_is_quick_again_counts_again() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    wire.seconds = lambda path: 2.0 if path == "/a/0" else 0.3
    async with anyio.create_task_group() as group:
        await hand_over(group, dispatcher, "a", 10)
        await anyio.sleep(1.0)
        assert (dispatcher.waiting(BINDING), dispatcher.backlog()) == (9, 0)
        await anyio.sleep(1.5)
        assert dispatcher.backlog() == dispatcher.waiting(BINDING) > 0


async def test_lanes_of_namespaces_that_are_gone_are_forgotten() -> None:
    wire = Wire()
    wire.seconds = lambda path: 0.0
    dispatcher = Dispatcher(wire, LoopClock())
    for index in range(2500):
        await dispatcher.send(BINDING, "POST", f"/{index}", namespace=str(index))
    assert sum(len(lanes) for lanes in dispatcher._lanes) <= 1000


# ---------------------------------------------------------------- cancellation


async def test_a_cancelled_waiter_gives_its_turn_to_the_next() -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)

    async def send(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await dispatcher.send(BINDING, "POST", name)

    scopes = [anyio.CancelScope() for _ in range(4)]
    async with anyio.create_task_group() as group:
        for name, scope in zip("abcd", scopes, strict=True):
            group.start_soon(send, name, scope)
        await anyio.sleep(0.5)
        scopes[1].cancel()
        await anyio.sleep(0.5 - 1e-6)
        assert dispatcher.statistics().waiting[BINDING] == 2
    assert [path for _, path in wire.started] == ["a", "c", "d"]
    assert dispatcher.statistics().in_flight == 0


@pytest.mark.parametrize("is_cancelled_first", [True, False])
async def test_a_waiter_cancelled_just_as_its_turn_comes_gives_the_turn_on(is_cancelled_first: bool) -> None:
    wire = Wire()
    dispatcher = Dispatcher(wire, LoopClock(), in_flight_max=1)
    waiting_task = asyncio.ensure_future(dispatcher.send(BINDING, "POST", "/held"))
    first = asyncio.ensure_future(dispatcher.send(BINDING, "POST", "/first"))
    second = asyncio.ensure_future(dispatcher.send(BINDING, "POST", "/second", namespace="b"))
    await asyncio.sleep(0.5)
    # The slot is free before either task runs again.
    for task in (first, waiting_task) if is_cancelled_first else (waiting_task, first):
        task.cancel()
    await second
    assert first.cancelled()
    assert [path for _, path in wire.started] == ["/held", "/second"]
    assert dispatcher.statistics().in_flight == 0
    assert dispatcher.statistics().waiting == dict.fromkeys(Priority, 0)


async def test_nobody_takes_a_token_from_those_who_wait_with_the_same_or_a_higher_priority() -> None:
    wire, clock = Wire(), LoopClock()
    dispatcher = Dispatcher(wire, clock, limiter=TokenBucket(1.0, 1, clock))
    async with anyio.create_task_group() as group:
        for name in ("/first", "/second"):
            group.start_soon(partial(dispatcher.send, namespace=name), STATUS, "PATCH", name)
        await anyio.sleep(1.0 - 1e-12)
        group.start_soon(partial(dispatcher.send, namespace="late"), STATUS, "PATCH", "/late")
    assert [path for _, path in wire.started] == ["/first", "/second", "/late"]


async def test_waits_and_retries_are_reported() -> None:
    reports: list[tuple[str, str, float]] = []

    class Observer(RequestObserver):
        def throttled(self, method: str, seconds: float) -> None:
            reports.append(("throttled", method, seconds))

        def retried(self, method: str, status: int) -> None:
            reports.append(("retried", method, status))

    wire, clock = Wire(), LoopClock()
    wire.refusals = [3.0]
    dispatcher = Dispatcher(wire, clock, limiter=TokenBucket(1.0, 2, clock), observer=Observer())
    await dispatcher.send(BINDING, "POST", "/a")
    assert reports == [("throttled", "POST", 0.0), ("retried", "POST", 429), ("throttled", "POST", 0.0)]
    await dispatcher.send(BINDING, "POST", "/b")
    await dispatcher.send(BINDING, "POST", "/c")
    assert reports[3:] == [("throttled", "POST", 0.0), ("throttled", "POST", 0.0)]


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
