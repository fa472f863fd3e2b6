from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.binder import ApiClient, not_scheduled
from podium.client.dispatcher import Dispatcher, Priority
from podium.daemon.status_writes import PodGroupStatusWrite, StatusWrite, StatusWrites
from podium.objects.api_errors import InternalError, NotFound
from podium.objects.core import Pod, PodCondition
from tests.builders import pod, pod_group
from tests.unit.binder.builders import Wire
from tests.unit.daemon.loop_bench import settle
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio

WEB = pod("web-1")


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Writing:
    """Statuses on their way over a wire on which one write takes a second, and no other goes beside it."""

    def __init__(self) -> None:
        clock = LoopClock()
        self.wire = Wire()
        self.wire.latency_s = 1.0
        self.dispatcher = Dispatcher(self.wire, clock, in_flight_max=1)
        self.statuses = StatusWrites(ApiClient(self.dispatcher, clock), clock)

    async def bind_another(self) -> None:
        await self.dispatcher.send(Priority.BINDING, "POST", "/binding", b"{}")

    @property
    def statuses_sent(self) -> list[tuple[str, Any]]:
        """Message and nominated node of each status."""
        statuses = [request.body["status"] for request in self.wire.requests if request.method == "PATCH"]
        return [(status["conditions"][0]["message"], status.get("nominatedNodeName", "-")) for status in statuses]


def status_write(message: str, nominated_node: str | None = None, item: Pod = WEB) -> StatusWrite:
    return StatusWrite(item, not_scheduled(item, message, is_rejected=True), nominated_node)


async def test_a_status_that_waits_is_taken_back_when_its_pod_is_about_to_be_bound() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        tasks.start_soon(writing.statuses.write, status_write("no"))
        await settle()
        assert writing.dispatcher.waiting(Priority.STATUS) == 1
        with anyio.fail_after(0.0):
            await writing.statuses.settle(WEB.uid)
        await settle()
        assert writing.dispatcher.waiting(Priority.STATUS) == 0
    assert writing.statuses_sent == []


async def test_a_status_that_has_begun_is_waited_for_but_what_would_follow_it_is_not_sent() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.statuses.write, status_write("no"))
        await settle()
        await writing.statuses.write(status_write("still no"))
        await writing.statuses.settle(WEB.uid)
        assert anyio.current_time() == pytest.approx(1.0, abs=0.01)
    assert writing.statuses_sent == [("no", "-")]


async def test_there_may_be_nothing_to_settle() -> None:
    await Writing().statuses.settle("nobody")


async def test_after_it_was_settled_a_pod_has_its_statuses_written_again() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        tasks.start_soon(writing.statuses.write, status_write("no"))
        await settle()
        await writing.statuses.settle(WEB.uid)
        tasks.start_soon(writing.statuses.write, status_write("binding failed"))
    assert writing.statuses_sent == [("binding failed", "-")]


async def test_what_wrote_a_status_that_was_dropped_goes_on() -> None:
    writing, reports = Writing(), []

    async def write_and_report() -> None:
        await writing.statuses.write(status_write("no"))
        await anyio.sleep(0.1)
        reports.append("written or dropped")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        tasks.start_soon(write_and_report)
        await settle()
        await writing.statuses.settle(WEB.uid)
    assert reports == ["written or dropped"]


async def test_a_task_that_is_cancelled_while_its_status_is_dropped_ends() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        task = asyncio.create_task(writing.statuses.write(status_write("no")))
        await settle()
        await writing.statuses.settle(WEB.uid)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert writing.statuses_sent == []


@pytest.mark.parametrize(
    ("nominations", "nomination"), [((None, None), "-"), (("n1", None), "n1"), (("n1", "n2"), "n2"), (("n1", ""), "-")]
)
async def test_of_statuses_that_wait_only_the_last_is_sent(nominations: tuple[Any, Any], nomination: str) -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        for message, nominated_node in zip(("first", "second"), nominations, strict=True):
            tasks.start_soon(writing.statuses.write, status_write(message, nominated_node))
        await settle()
        assert writing.dispatcher.waiting(Priority.STATUS) == 1
    assert writing.statuses_sent == [("second", nomination)]


async def test_a_status_follows_the_one_that_has_begun() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.statuses.write, status_write("first", "n1"))
        await settle()
        tasks.start_soon(writing.statuses.write, status_write("second"))
    assert writing.statuses_sent == [("first", "n1"), ("second", "-")]


async def test_what_is_tried_again_is_the_latest_status() -> None:
    writing = Writing()
    failures = [InternalError("etcd is away")]

    def reply(request: Any) -> Any:
        if failures:
            raise failures.pop()
        return {}

    writing.wire.answer = reply
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.statuses.write, status_write("first", "n1"))
        await settle()
        await writing.statuses.write(status_write("second"))
    assert writing.statuses_sent == [("first", "n1"), ("second", "n1")]


async def test_a_status_that_changes_nothing_takes_no_turn() -> None:
    writing = Writing()
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    pod_with_condition = pod("web-1", status={"conditions": [condition]})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.bind_another)
        await settle()
        with anyio.fail_after(0.0):
            await writing.statuses.write(status_write("no", item=pod_with_condition))


@pytest.mark.parametrize(("error", "levels"), [(NotFound("gone"), []), (InternalError("away"), ["warning"])])
async def test_a_status_that_cannot_be_written_is_warned_of_unless_the_pod_is_gone(
    error: Exception, levels: list[str]
) -> None:
    writing = Writing()

    def reply(request: Any) -> Any:
        raise error

    writing.wire.answer = reply
    with capture_logs() as logs:
        await writing.statuses.write(status_write("no"))
    # Whether debug lines are there depends on what was configured before.
    assert [entry["log_level"] for entry in logs if entry["log_level"] != "debug"] == levels


def of_group(status: str, message: str) -> PodGroupStatusWrite:
    condition = PodCondition(type="PodGroupScheduled", status=status, reason="r", message=message)
    return PodGroupStatusWrite(pod_group("gang"), condition)


async def test_of_a_pod_groups_statuses_the_latest_is_sent_but_success_is_never_taken_back() -> None:
    writing = Writing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writing.statuses.write, of_group("False", "first"))
        await settle()
        for write in (of_group("False", "second"), of_group("True", "done"), of_group("False", "late")):
            tasks.start_soon(writing.statuses.write, write)
            await settle()
    assert [message for message, _ in writing.statuses_sent] == ["first", "done"]
    assert {request.path.rpartition("podgroups/")[2] for request in writing.wire.requests} == {"gang/status"}
