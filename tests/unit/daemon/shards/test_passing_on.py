"""Tests for how a member tells the others about pods that did not fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import asynccontextmanager
from copy import copy
from typing import Any

import anyio
import msgspec
import pytest

from podium.binder import ApiClient
from podium.client.dispatcher import Dispatcher
from podium.daemon.shards.passing_on import PassingOn
from podium.objects.api_errors import Forbidden, NotFound, Unavailable
from podium.objects.core import Pod
from podium.shards import Ownership, Role
from podium.telemetry import Metrics
from tests.builders import pod
from tests.unit.binder.builders import Request, Wire
from tests.virtual_time import VIRTUAL_TIME, LoopClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


class Shards:
    ownership = Ownership("m1", "zone", frozenset({"m1", "m2"}))
    role_now = Role.HOME

    def role(self, pod: Pod) -> Role:
        del pod
        return self.role_now


class Handler:
    def __init__(self) -> None:
        self.decided: set[str] = set()
        self.divided: list[str] = []

    def is_decided(self, pod: Pod) -> bool:
        return pod.key in self.decided

    async def divide_again(self, pods: list[Pod]) -> None:
        self.divided += [pod.key for pod in pods]


class Group:
    """What `PassingOn` has around it; the API server answers writes with these errors first."""

    def __init__(self, *errors: Exception) -> None:
        self.pods = {pod("web-1").key: pod("web-1")}
        self.shards, self.handler, self.metrics = Shards(), Handler(), Metrics()
        errors_left: Iterator[Exception] = iter(errors)

        def answer(request: Request) -> Any:
            del request
            for error in errors_left:
                # A new one each time, as a request raises it.
                raise copy(error)
            return {}

        self.wire = Wire(answer)
        clock = LoopClock()
        client = ApiClient(Dispatcher(self.wire, clock), clock)
        shards: Any = self.shards
        handler: Any = self.handler
        self.passing_on = PassingOn(shards, self.pods.get, handler, client, self.metrics)

    @asynccontextmanager
    async def running(self) -> Any:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.passing_on.run)
            yield
            tasks.cancel_scope.cancel()

    def fail(self, result: str = "unschedulable") -> None:
        self.passing_on.on_failure(pod("web-1"), result, "0/3 nodes are available", 0.1)

    def messages(self) -> list[str]:
        """Return the messages of the conditions that were sent."""
        return [request.body["status"]["conditions"][0]["message"] for request in self.wire.requests]


async def test_a_pod_that_did_not_fit_is_passed_on_with_the_name_of_this_member() -> None:
    group = Group()
    async with group.running():
        group.fail()
        await anyio.sleep(1.0)
    assert group.messages() == ["tried: m1"]


@pytest.mark.parametrize(
    ("error", "tries"),
    [(Unavailable("away", code=503), 4), (Forbidden("no", code=403), 1), (NotFound("?", code=404), 1)],
)
async def test_a_write_that_fails_is_repeated_ever_later_until_it_succeeds(error: Exception, tries: int) -> None:
    group = Group(*itertools.repeat(error, 3 * tries))
    async with group.running():
        group.fail()
        await anyio.sleep(100.0)
    times_s = [request.at_s for request in group.wire.requests]
    pauses_s = [round(later_s - earlier_s) for earlier_s, later_s in itertools.pairwise(times_s)]
    assert len(times_s) == 3 * tries + 1
    assert [pause_s for pause_s in pauses_s if pause_s] == [1, 2, 4]


async def test_a_pod_that_is_gone_bound_or_decided_on_meanwhile_is_not_written_again() -> None:
    for change in ("gone", "bound", "decided"):
        group = Group(*itertools.repeat(Unavailable("away", code=503), 4))
        async with group.running():
            group.fail()
            await anyio.sleep(0.9)
            key, item = next(iter(group.pods.items()))
            if change == "gone":
                group.pods.clear()
            elif change == "bound":
                group.pods[key] = item.on_node("n1")
            else:
                group.handler.decided.add(key)
            await anyio.sleep(100.0)
        assert len(group.wire.requests) == 4, change


async def test_a_pod_that_another_member_decides_on_now_leaves_the_queue() -> None:
    group = Group()
    group.shards.role_now = Role.NONE
    async with group.running():
        group.fail()
        await anyio.sleep(1.0)
    assert group.handler.divided == ["default/web-1"]
    assert group.messages() == []


async def test_an_attempt_that_failed_with_an_error_is_not_passed_on() -> None:
    group = Group()
    async with group.running():
        group.fail("error")
        await anyio.sleep(1.0)
    assert group.messages() == []


async def test_a_placement_that_is_refused_is_taken_back_and_visits_are_kept() -> None:
    group = Group()
    group.shards.role_now = Role.TARGET
    item = pod("web-1")
    condition = {"type": "podium/shards", "status": "False", "message": "tried: m2; node: n1"}
    status = msgspec.convert({"conditions": [condition]}, type(item.status))
    group.pods[item.key] = msgspec.structs.replace(item, status=status)
    async with group.running():
        group.fail("error")
        await anyio.sleep(1.0)
    assert group.messages() == ["tried: m2"]
