"""Gangs of the plugin Coscheduling in a daemon without a network, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from podium.daemon.coscheduling import PodGroupKeeper, status_of
from podium.objects.api_errors import Forbidden, NotFound
from podium.objects.core import Pod
from podium.plugins.contrib.coscheduling.gangs import Gang
from podium.plugins.contrib.coscheduling.plugin import Coscheduling, CoschedulingArgs
from podium.queues import QueueState
from podium.testing.handle import RecordingClient
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, settle
from tests.unit.daemon.test_pod_groups import Fit
from tests.unit.plugins.contrib.coscheduling.test_plugin import group, member
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def bench_with(**args: int) -> LoopBench:
    class Gangs(Coscheduling):
        name = "Coscheduling"

        def __init__(self, _: Any, handle: Any) -> None:
            super().__init__(CoschedulingArgs(**args), handle)

    return LoopBench(Fit, sort=Gangs)


def keeper_of(bench: LoopBench, client: Any = None) -> PodGroupKeeper:
    plugin: Any = bench.frameworks["podium"].plugins["Coscheduling"]
    informers: Any = Informers()
    return PodGroupKeeper(plugin.gangs, bench.queue, client or RecordingClient(), informers, bench.clock)


@asynccontextmanager
async def running(bench: LoopBench) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keeper_of(bench).run)
        async with bench.running():
            yield
        tasks.cancel_scope.cancel()


def bound_names(bench: LoopBench) -> set[str]:
    return {name for name, _ in bench.bindings}


def members(name: str, count: int) -> list[Pod]:
    return [member(f"{name}-{at}", name, cpu="1") for at in range(count)]


def names(pods: list[Pod]) -> set[str]:
    return {pod.metadata.name for pod in pods}


async def test_a_gang_is_bound_once_all_of_it_fits() -> None:
    bench, pods = bench_with(), members("train", 3)
    bench.put(node("n1", cpu="2"), group())
    async with running(bench):
        bench.put(*pods)
        await anyio.sleep(5)
        assert bound_names(bench) == set()
        assert bench.cache.statistics()["assumed_pods"] == 0
        bench.put(node("n2", cpu="1"))
        await anyio.sleep(15)
        assert bound_names(bench) == names(pods)


async def test_a_member_that_fits_nowhere_does_not_keep_the_others_if_they_are_enough() -> None:
    """It comes first in the queue, and each of its attempts rejects its gang."""
    bench = bench_with()
    pods = [member("train-0", "train", cpu="64"), *(member(f"train-{at}", "train", cpu="1") for at in (1, 2, 3))]
    bench.put(node("n1", cpu="4"), group())
    async with running(bench):
        bench.put(*pods)
        await anyio.sleep(60)
        assert bound_names(bench) == names(pods[1:])


async def test_a_pod_that_comes_last_completes_its_gang() -> None:
    bench, pods = bench_with(), members("train", 3)
    bench.put(node("n1", cpu="8"), group())
    async with running(bench):
        bench.put(*pods[:2])
        await settle()
        assert bench.place(pods[0]) is QueueState.UNSCHEDULABLE
        bench.put(pods[2])
        await settle()
        assert bound_names(bench) == names(pods)


@pytest.mark.parametrize("percentage", [10, 90])
async def test_two_gangs_that_each_hold_half_do_not_block_each_other(percentage: int) -> None:
    """Also if neither lets go before its time is up."""
    bench = bench_with(pod_group_reject_percentage=percentage)
    ours, theirs = members("ours", 4), members("theirs", 4)
    bench.put(node("n1", cpu="4"), group("ours", minMember=4), group("theirs", minMember=4))
    # Two of each have a node before the others come: no queue could have told them apart.
    halves = (*ours[:2], *theirs[:2])
    for item in (*ours[2:], *theirs[2:]):
        bench.known[item.key] = item
        for handler in bench.listed_pods.handlers:
            handler.on_add(item)
    async with running(bench):
        bench.put(*halves)
        await settle()
        assert bench.cache.statistics()["assumed_pods"] == 4
        for item in (*ours[2:], *theirs[2:]):
            bench.pods.on_add(item)
        await anyio.sleep(300)
        first = bound_names(bench)
        assert first in (names(ours), names(theirs))
        for item in ours if first == names(ours) else theirs:
            bench.delete(bench.known[item.key])
        await anyio.sleep(300)
        assert bound_names(bench) == names(ours) | names(theirs)


async def test_what_a_gang_gives_up_is_free_for_the_gang_that_begins_right_after() -> None:
    bench, second = bench_with(), members("second", 2)
    first = member("first-0", "first", cpu="1"), member("first-1", "first", cpu="9")
    bench.put(node("n1", cpu="2"), group("first", minMember=2), group("second", minMember=2), *first, *second)
    async with running(bench):
        await settle()
        assert bound_names(bench) == names(second)


async def test_a_group_that_is_deleted_while_its_pods_wait_lets_them_go_in_time() -> None:
    bench, pods = bench_with(), [*members("train", 2), member("train-2", "train", cpu="9")]
    bench.put(node("n1", cpu="4"), group(scheduleTimeoutSeconds=30, minMember=3))
    async with running(bench):
        bench.put(*pods[:2])
        bench.known[pods[2].key] = pods[2]
        for handler in bench.listed_pods.handlers:
            handler.on_add(pods[2])
        bench.put(pod("other"))
        await anyio.sleep(1)
        del bench.coscheduled["default/train"]
        await anyio.sleep(40)
        assert bench.cache.statistics()["assumed_pods"] <= 1
        assert bound_names(bench) == {"other"}
        bench.put(group(minMember=2))
        await anyio.sleep(20)
        assert bound_names(bench) == {"other", "train-0", "train-1"}


async def test_a_group_that_backs_off_is_tried_again_afterwards() -> None:
    bench, pods = bench_with(pod_group_backoff_seconds=20), members("train", 3)
    bench.put(node("n1", cpu="2"), group())
    async with running(bench):
        bench.put(*pods)
        await anyio.sleep(3)
        bench.put(node("n2", cpu="1"))
        await anyio.sleep(3)
        assert bound_names(bench) == set()
        await anyio.sleep(20)
        assert bound_names(bench) == names(pods)


class Informers:
    """Informers that are synced."""

    async def wait_synced(self) -> None:
        pass

    def is_absent(self, resource: Any) -> bool:
        return True


def gang(*pods: Pod) -> Gang:
    gang = Gang()
    for item in pods:
        gang.set_member(item)
    return gang


def test_the_status_says_how_far_a_group_is() -> None:
    phases = {"Running": {"phase": "Running"}, "": {}}
    first, two = member("a", metadata={"ownerReferences": [{"name": "job"}]}), member("b")
    runs = [member(name, node="n1", status=phases["Running"]) for name in "ab"]
    wants = group(minMember=2)
    assert status_of(wants, gang(), 0.0) == {"phase": "Pending", "running": 0, "scheduled": 0}
    assert status_of(wants, gang(first), 0.0) == {"phase": "Pending", "running": 0, "scheduled": 0}
    assert status_of(wants, gang(first, two), 0.0) == {
        "phase": "Scheduling",
        "running": 0,
        "scheduled": 0,
        "occupiedBy": "default/job",
        "scheduleStartTime": "1970-01-01T00:00:00Z",
    }
    running = status_of(wants, gang(*runs), 0.0)
    assert running is not None
    assert (running["phase"], running["running"], running["scheduled"]) == ("Running", 2, 2)


async def test_a_status_is_written_once_for_each_change() -> None:
    bench, client = bench_with(), RecordingClient()
    keeper, pod_group = keeper_of(bench, client), group(minMember=1)
    bench.put(pod_group, member("a"))
    keeper.on_add(pod_group)
    keeper.on_add(member("a"))
    await keeper.write()
    await keeper.write()
    keeper.on_update(pod_group, pod_group)
    keeper.on_delete(member("other", "other"))
    await keeper.write()
    assert [(key, change["status"]["phase"]) for key, change in client.patches] == [("default/train", "Scheduling")]


async def test_a_status_that_could_not_be_written_is_written_later() -> None:
    bench, pod_group = bench_with(), group(minMember=1)
    answers: list[Exception] = [NotFound("gone"), Forbidden("no")]
    attempts: list[str] = []

    class Client:
        async def patch(self, resource: Any, item: Any, change: Any, subresource: str) -> None:
            attempts.append(f"{resource.plural}/{subresource} {item.key}")
            if answers:
                raise answers.pop()

    keeper = keeper_of(bench, Client())
    bench.put(pod_group)
    keeper.on_add(pod_group)
    for _ in range(4):
        await keeper.write()
    assert attempts == ["podgroups/status default/train"] * 2
    keeper.on_delete(pod_group)
    await keeper.write()
    assert len(attempts) == 3
