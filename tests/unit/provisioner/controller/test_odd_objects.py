"""Objects, NodeClaims and clocks that are not as they should be, in virtual time: each spoils its own step only."""

from __future__ import annotations

import anyio
import pytest

from podium.provisioner.apis.labels import PLANNED_PODS
from podium.provisioner.controller.watched import LAUNCHED_S_MAX
from tests.unit.provisioner.clusters import Document, node_claim, pod
from tests.unit.provisioner.controller.bench import Bench, World, on_demand_pool
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def without_machine(name: str, *pods: Document) -> Document:
    """A NodeClaim that has not been launched; with pods, one that podium has made for them."""
    annotations = {PLANNED_PODS: ",".join(item["metadata"]["uid"] for item in pods)} if pods else {}
    claim = node_claim(name, machine="", annotations=annotations)
    return {**claim, "metadata": {**claim["metadata"], "uid": name}, "status": {}}


async def bought(*documents: Document, after_s: float) -> World:
    """The world after a while with these objects."""
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), *documents)
    async with bench.running():
        await anyio.sleep(after_s)
    return world


async def test_a_foreign_node_claim_that_never_launches_keeps_nobody_waiting(anyio_backend: object) -> None:
    world = await bought(without_machine("theirs"), pod("web"), after_s=5.0)
    assert len(world.creations) == 1


async def test_pods_of_a_node_claim_that_launches_are_not_planned_again_and_others_are() -> None:
    waiting, newcomer = pod("web-0"), pod("web-1", cpu="3")
    world = await bought(without_machine("ours", waiting), waiting, newcomer, after_s=60.0)
    assert len(world.creations) == 1
    world = await bought(without_machine("ours", waiting), waiting, after_s=60.0)
    assert world.creations == []


async def test_a_node_claim_that_does_not_launch_in_time_is_given_up() -> None:
    waiting = pod("web-0")
    world = await bought(without_machine("ours", waiting), waiting, after_s=LAUNCHED_S_MAX + 30.0)
    assert len(world.creations) == 1


@pytest.mark.parametrize("hours", [-1, 24 * 365])
async def test_a_clock_that_is_set_keeps_no_node_and_lets_none_go_early(hours: int) -> None:
    world = World()
    bench = Bench(world)
    pool = on_demand_pool()
    pool["spec"]["disruption"]["consolidateAfter"] = "60s"
    waiting = pod("web-0", cpu="3")
    bench.put(pool, waiting)
    async with bench.running(disrupts=True):
        await anyio.sleep(5.0)
        (name,) = world.creations
        running = {**waiting, "spec": {**waiting["spec"], "nodeName": name}, "status": {"phase": "Running"}}
        bench.put(running)
        await anyio.sleep(60.0)
        bench.drop(running)
        await anyio.sleep(1.0)
        world.ahead_s = hours * 3600.0
        await anyio.sleep(50.0)
        assert world.removals == []
        await anyio.sleep(60.0)
    assert world.removals == [name]


async def test_a_node_that_has_never_had_a_pod_goes_though_the_clock_is_set_back() -> None:
    world = World()
    bench = Bench(world)
    waiting = pod("web-0", cpu="3")
    bench.put(on_demand_pool(), waiting)
    async with bench.running(disrupts=True):
        await anyio.sleep(5.0)
        bench.drop(waiting)
        world.ahead_s = -3600.0
        await anyio.sleep(90.0)
    assert world.removals == world.creations
