from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from podium.binder import Event, EventRecorder, ObjectReference, failed_scheduling, preempted_event, scheduled_event
from podium.client.dispatcher import Dispatcher
from podium.lib.clock import ManualClock
from podium.objects.api_errors import AlreadyExists, ApiError, Forbidden, InternalError, NotFound, Unreachable
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.times import format_micro_time
from tests.builders import pod
from tests.unit.binder.builders import Request, Wire
from tests.virtual_time import START_S, LoopClock

pytestmark = pytest.mark.anyio

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def recorder(wire: Wire, **options: Any) -> EventRecorder:
    clock = LoopClock()
    return EventRecorder(Dispatcher(wire, clock), clock, hostname="host-1", **options)


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[EventRecorder]:
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        yield recorder
        await recorder.aclose(600.0)


def failed_event(note: str = "no room", **options: Any) -> Event:
    return failed_scheduling(pod(**options), note)


async def settle() -> None:
    await anyio.sleep(0.001)


def now() -> str:
    return format_micro_time(LoopClock().now())


async def test_an_event_is_written_as_the_api_wants_it() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        await anyio.sleep(1.0)
        moment_s, moment = LoopClock().now(), now()
        events.record(scheduled_event(pod(metadata={"resourceVersion": "7"}), "n1"))
    assert wire.calls == [f"POST {EVENTS}"]
    assert wire.requests[0].body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"web-1.{int(moment_s * 1e9):x}", "namespace": "default"},
        "eventTime": moment,
        "reportingController": "podium",
        "reportingInstance": "podium-host-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web-1",
            "namespace": "default",
            "uid": "uid-web-1",
            "resourceVersion": "7",
        },
        "note": "Successfully assigned default/web-1 to n1",
        "type": "Normal",
    }


async def test_a_victims_event_names_the_preemptor() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(preempted_event(pod(), pod("urgent", uid="u2"), "n1"))
    assert wire.requests[0].body["related"]["name"] == "urgent"


async def test_an_event_about_a_cluster_scoped_object_lies_in_the_default_namespace() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        node = ObjectReference("v1", "Node", "n1", uid="un")
        events.record(Event("podium", node, "Normal", "Seen", "Looking", "here"))
    assert wire.requests[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert wire.requests[0].body["metadata"]["namespace"] == "default"
    assert "namespace" not in wire.requests[0].body["regarding"]


async def test_two_events_in_the_same_instant_have_different_names() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(scheduled_event(pod(), "n1"))
        events.record(failed_event())
    assert len({request.body["metadata"]["name"] for request in wire.requests}) == 2


async def test_names_and_instances_stay_within_the_apis_limits() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(scheduled_event(pod("x" * 250, uid="u1", scheduler="s" * 150), "n1"))
    body = wire.requests[0].body
    assert body["metadata"]["name"].startswith("u1.")
    assert len(body["reportingInstance"]) == 128


async def test_the_second_occurrence_starts_a_series_and_later_ones_wait() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(failed_event("first"))
        await settle()
        name = wire.requests[0].body["metadata"]["name"]
        await anyio.sleep(60.0)
        events.record(failed_event("second"))
        moment = now()
        await settle()
        events.record(failed_event("third"))
        await settle()
        assert wire.calls == [f"POST {EVENTS}", f"PATCH {EVENTS}/{name}"]
        assert wire.requests[1].body == {"series": {"count": 2, "lastObservedTime": moment}}


async def test_what_a_series_has_counted_is_written_when_it_has_ended() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        for _ in range(5):
            events.record(failed_event())
            await settle()
        await anyio.sleep(8 * 60.0)
        assert len(wire.requests) == 3
        assert wire.requests[2].body["series"]["count"] == 5
        assert wire.requests[2].at_s - wire.requests[1].at_s <= 7 * 60.0 + 1.0


async def test_a_series_that_goes_on_is_brought_up_to_date_every_half_hour() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        for _ in range(64):
            events.record(failed_event())
            await anyio.sleep(60.0)
        minutes = [request.at_s / 60.0 for request in wire.requests]
        assert [minute - minutes[0] for minute in minutes] == pytest.approx([0.0, 1.0, 31.0, 61.0], abs=1.0)


async def test_a_repetition_after_six_minutes_is_a_new_event() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(failed_event())
        await anyio.sleep(6 * 60.0)
        events.record(failed_event())
        await settle()
    assert wire.calls == [f"POST {EVENTS}"] * 2


async def test_a_repetition_before_the_first_was_written_is_written_along() -> None:
    wire = Wire()
    events = recorder(wire)
    events.record(failed_event())
    events.record(failed_event())
    async with running(events):
        await settle()
    assert wire.calls == [f"POST {EVENTS}"]
    assert wire.requests[0].body["series"]["count"] == 2


async def test_a_repetition_while_the_first_is_being_written_follows_it() -> None:
    wire = Wire()
    wire.latency_s = 1.0
    async with running(recorder(wire)) as events:
        events.record(failed_event())
        await anyio.sleep(0.5)
        events.record(failed_event())
        await anyio.sleep(2.0)
        assert [request.method for request in wire.requests] == ["POST", "PATCH"]


async def test_a_series_that_the_server_has_forgotten_is_created_again() -> None:
    def answer(request: Request) -> object:
        if request.method == "PATCH":
            raise NotFound("gone", code=404)
        return {}

    wire = Wire(answer)
    async with running(recorder(wire)) as events:
        events.record(failed_event())
        await settle()
        events.record(failed_event())
        await settle()
    assert [request.method for request in wire.requests] == ["POST", "PATCH", "POST"]
    assert wire.requests[2].body["series"]["count"] == 2


async def test_other_versions_of_a_pod_are_not_the_same_series() -> None:
    wire = Wire()
    async with running(recorder(wire)) as events:
        events.record(failed_event())
        events.record(failed_event(metadata={"resourceVersion": "8"}))
    assert wire.calls == [f"POST {EVENTS}"] * 2


async def test_an_unreachable_server_is_tried_twelve_times_ten_seconds_apart() -> None:
    def answer(request: Request) -> object:
        raise Unreachable("down")

    wire = Wire(answer)
    async with running(recorder(wire)) as events:
        events.record(failed_event())
        await anyio.sleep(600.0)
        assert [request.at_s - wire.requests[0].at_s for request in wire.requests] == pytest.approx(
            [10.0 * attempt for attempt in range(12)]
        )
        assert events.statistics().given_up_total == 1
        assert events.statistics().open == 0


@pytest.mark.parametrize("error", [Forbidden("no", code=403), InternalError("oops", code=500)])
async def test_an_event_that_the_server_refuses_is_not_tried_again(error: ApiError) -> None:
    def answer(request: Request) -> object:
        raise error

    wire = Wire(answer)
    async with running(recorder(wire)) as events:
        events.record(scheduled_event(pod(), "n1"))
        events.record(scheduled_event(pod(), "n2"))
        await anyio.sleep(600.0)
    assert len(wire.requests) == 2
    assert events.statistics().given_up_total == 2


async def test_an_event_that_is_there_already_has_been_written() -> None:
    def answer(request: Request) -> object:
        if len(wire.requests) == 1:
            raise Unreachable("reset")
        raise AlreadyExists("there", code=409)

    wire = Wire(answer)
    async with running(recorder(wire)) as events:
        events.record(scheduled_event(pod(), "n1"))
    assert events.statistics().written_total == 1


@pytest.mark.parametrize("senseless", [b"", b"<html>", {"kind": "Status", "apiVersion": "v1", "status": "Success"}])
async def test_an_event_that_is_not_answered_by_itself_is_tried_again(senseless: object) -> None:
    wire = Wire(lambda _: senseless if len(wire.requests) == 1 else {})
    async with running(recorder(wire)) as events:
        events.record(scheduled_event(pod(), "n1"))
        await anyio.sleep(60.0)
        assert events.statistics().written_total == 1
    assert len(wire.requests) == 2


async def test_events_of_a_namespace_that_is_slow_or_out_of_reach_hold_no_others_up() -> None:
    def answer(request: Request) -> object:
        if "/namespaces/lost/" in request.path:
            raise Unreachable("down")
        return {}

    wire = Wire(answer)
    wire.latency_of = lambda request: 60.0 if "/namespaces/slow/" in request.path else 0.0
    async with running(recorder(wire)) as events:
        for namespace in ("slow", "lost", "quick"):
            for index in range(100):
                events.record(scheduled_event(in_namespace(namespace, f"{namespace}-{index}"), "n1"))
        await anyio.sleep(1.0)
        assert events.statistics().written_total == 100
        # All are written in the end, by a third of the writers where nobody else needs them.
        await anyio.sleep(2000.0)
        assert events.statistics().written_total == 200
        assert events.statistics().open == 0


def in_namespace(namespace: str, name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=name))


async def test_a_full_queue_drops_and_counts() -> None:
    wire = Wire()
    events = recorder(wire, queue_max=1000)
    for index in range(1005):
        events.record(scheduled_event(pod(f"p{index}", uid=str(index)), "n1"))
    assert events.statistics().dropped_total == 5
    async with running(events):
        await anyio.sleep(1.0)
    assert len(wire.requests) == 1000


async def test_a_dropped_event_is_not_remembered_as_the_start_of_a_series() -> None:
    wire = Wire()
    events = recorder(wire, queue_max=1)
    events.record(scheduled_event(pod(), "n1"))
    events.record(failed_event())
    async with running(events):
        await settle()
        events.record(failed_event())
    assert wire.requests[-1].method == "POST"
    assert "series" not in wire.requests[-1].body


async def test_series_that_have_ended_are_forgotten_and_unique_events_never_remembered() -> None:
    async with running(recorder(Wire())) as events:
        events.record(failed_event())
        events.record(scheduled_event(pod(), "n1"))
        assert events.statistics().series == 1
        await anyio.sleep(7 * 60.0 + 1.0)
        assert events.statistics().series == 0


async def test_no_more_than_ten_thousand_series_are_remembered() -> None:
    events = recorder(Wire(), queue_max=20_000)
    for index in range(10_002):
        events.record(failed_event(uid=str(index)))
    assert events.statistics().series == 10_000
    assert events.statistics().open == 10_002


async def test_closing_writes_what_is_queued_and_the_counts_not_yet_written() -> None:
    wire = Wire()
    wire.latency_s = 0.1
    async with anyio.create_task_group() as group:
        events = recorder(wire)
        group.start_soon(events.run)
        for _ in range(3):
            events.record(failed_event())
            await anyio.sleep(1.0)
        for index in range(100):
            events.record(scheduled_event(pod(f"p{index}", uid=str(index)), "n1"))
        assert await events.aclose(5.0) == 0
        events.record(scheduled_event(pod(), "n1"))
    assert len(wire.requests) == 1 + 1 + 100 + 1
    assert wire.requests[-1].body["series"]["count"] == 3
    assert events.statistics().dropped_total == 1


async def test_closing_gives_up_at_the_deadline_and_says_how_many_are_left() -> None:
    def answer(request: Request) -> object:
        raise Unreachable("down")

    async with anyio.create_task_group() as group:
        events = recorder(Wire(answer))
        group.start_soon(events.run)
        for index in range(20):
            events.record(scheduled_event(pod(f"p{index}", uid=str(index)), "n1"))
        started_s = LoopClock().monotonic()
        assert await events.aclose(2.0) == 20
        assert LoopClock().monotonic() - started_s == pytest.approx(2.0)


async def test_no_more_than_sixteen_events_are_written_at_once() -> None:
    wire = Wire()
    wire.latency_s = 1.0
    async with running(recorder(wire)) as events:
        for index in range(40):
            events.record(scheduled_event(pod(f"p{index}", uid=str(index)), "n1"))
        await anyio.sleep(0.5)
        assert len(wire.requests) == 16
    assert len(wire.requests) == 40
    assert LoopClock().now() > START_S


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
async def test_a_series_neither_ends_nor_goes_on_because_the_wall_clock_was_set(set_by_s: float) -> None:
    wire, clock = Wire(), ManualClock()
    async with running(EventRecorder(Dispatcher(wire, LoopClock()), clock, hostname="host-1")) as events:
        events.record(failed_event())
        await settle()
        clock.advance(60.0)
        clock.set_wall(clock.now() + set_by_s)
        events.record(failed_event())
        await settle()
        assert [call.split()[0] for call in wire.calls] == ["POST", "PATCH"]
        clock.advance(6 * 60.0)
        events.record(failed_event())
        await settle()
        assert [call.split()[0] for call in wire.calls] == ["POST", "PATCH", "POST"]
