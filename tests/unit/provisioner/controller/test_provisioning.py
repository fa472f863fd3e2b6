"""The loop that buys nodes, in virtual time: batches, lost answers, errors and restarts."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from podium.objects.api_errors import Forbidden, OutcomeUnknown, Unreachable
from tests.gang_manifests import UPSTREAM, group
from tests.unit.provisioner.clusters import Document, pod
from tests.unit.provisioner.controller.bench import Bench, World, on_demand_pool
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


@pytest.fixture
def world() -> World:
    return World()


def pods(count: int, start: int = 0) -> list[Document]:
    """Each takes 1 core, so that three of them fit on a node of 4 cores with its overhead."""
    return [pod(f"web-{index}") for index in range(start, start + count)]


async def test_pods_that_come_together_are_planned_together(anyio_backend: object, world: World) -> None:
    bench = Bench(world)
    bench.put(on_demand_pool())
    async with bench.running():
        for pod in pods(6):
            bench.put(pod)
            await anyio.sleep(0.4)
        await anyio.sleep(2.0)
    (plan,) = bench.plans
    assert sorted(len(node.pods) for node in plan.nodes) == [3, 3]
    assert sorted(world.creations) == sorted(node.name for node in plan.nodes)


async def test_a_gang_that_does_not_start_is_warned_about_once(anyio_backend: object, world: World) -> None:
    bench = Bench(world)
    bench.put(on_demand_pool(limits={"cpu": "4"}), group(UPSTREAM, 2))
    bench.put(*(pod(f"train-{index}", cpu="3", schedulingGroup={"podGroupName": "train"}) for index in range(2)))
    with capture_logs() as logs:
        async with bench.running():
            await anyio.sleep(2.0)
    (plan,) = bench.plans
    (warning,) = plan.warnings
    assert "the gang default/train (scheduling.k8s.io) does not start" in warning
    assert "these new nodes will be idle: 1 default of NodePool pool" in warning
    assert [entry["what"] for entry in logs if entry["event"] == "A plan has a warning"] == [warning]


async def test_pods_that_still_wait_are_planned_again_and_nothing_is_bought_twice(world: World) -> None:
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(6))
    async with bench.running():
        await anyio.sleep(60.0)
    assert len(world.creations) == 2
    assert len(bench.plans) >= 5
    assert [len(plan.nodes) for plan in bench.plans[1:]] == [0] * (len(bench.plans) - 1)


async def test_nothing_is_planned_until_the_nodes_are_seen(world: World) -> None:
    world.lag_s = 30.0
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(3))
    async with bench.running():
        await anyio.sleep(4.0)
        bench.put(*pods(3, start=3))
        await anyio.sleep(20.0)
        assert (len(bench.plans), len(world.creations)) == (1, 1)
        await anyio.sleep(20.0)
    assert len(world.creations) == 2


async def test_a_lost_answer_is_looked_up_and_a_node_that_was_made_is_used(world: World) -> None:
    world.refusals = [OutcomeUnknown("connection reset by peer")]
    world.lag_s = 8.0
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(3))
    async with bench.running():
        await anyio.sleep(60.0)
    assert len(world.creations) == 1
    assert bench.errors == []


async def test_a_node_that_was_not_made_is_bought_after_the_look_up(world: World) -> None:
    world.loses = [OutcomeUnknown("connection reset by peer")]
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(3))
    async with bench.running():
        await anyio.sleep(4.0)
        assert world.creations == []
        await anyio.sleep(20.0)
    assert len(world.creations) == 1


async def test_a_node_that_is_refused_is_asked_for_again_with_a_growing_pause(world: World) -> None:
    world.loses = [Forbidden("no"), Unreachable("down"), Forbidden("no"), Forbidden("no")]
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(3))
    async with bench.running():
        await anyio.sleep(5.0)
        assert 1 <= len(bench.refused) <= 3
        await anyio.sleep(60.0)
    assert len(bench.refused) == 4
    assert bench.errors == []
    assert len(world.creations) == 1


async def test_one_node_that_cannot_be_bought_does_not_keep_the_others(world: World) -> None:
    world.loses = [Forbidden("no")]
    bench = Bench(world)
    bench.put(on_demand_pool(), *pods(9))
    async with bench.running():
        await anyio.sleep(3.0)
        assert len(world.creations) == 2
        await anyio.sleep(60.0)
    assert len(world.creations) == 3


@pytest.mark.parametrize("killed_after_s", [1.05, 1.10, 1.2, 2.5])
async def test_a_process_that_is_killed_leaves_nothing_to_be_bought_twice(world: World, killed_after_s: float) -> None:
    waiting = [on_demand_pool(), *pods(60)]
    first = Bench(world)
    first.put(*waiting)
    async with first.running():
        await anyio.sleep(killed_after_s)
    second = Bench(world)
    async with second.running():
        await anyio.sleep(60.0)
    assert len(world.creations) == len(set(world.creations)) == 20


async def test_an_object_that_cannot_be_used_is_left_out(world: World) -> None:
    bench = Bench(world)
    odd = on_demand_pool()
    odd["metadata"] = {"name": "odd"}
    odd["spec"]["limits"] = {"cpu": "many"}
    bench.put(on_demand_pool(), odd, *pods(3))
    async with bench.running():
        await anyio.sleep(5.0)
    assert bench.errors == []
    assert len(world.creations) == 1
