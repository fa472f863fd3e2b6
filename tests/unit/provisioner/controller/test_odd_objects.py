"""Objects, NodeClaims and clocks that are not as they should be, in virtual time: each spoils its own step only."""

from __future__ import annotations

import anyio
import pytest

from podium.provisioner.apis.labels import PLANNED_PODS
from podium.provisioner.controller.watched import LAUNCHED_S_MAX, REGISTERED_S_MAX
from podium.provisioner.state.settings import Settings
from tests.unit.provisioner.clusters import Document, node_claim, pod, requirement
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


async def test_a_node_claim_whose_node_never_joins_is_waited_for_as_long_as_karpenter_waits() -> None:
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), node_claim("theirs", uid="theirs"), pod("web"))
    async with bench.running():
        await anyio.sleep(REGISTERED_S_MAX - 30.0)
        assert world.creations == []
        world.ahead_s = -3600.0
        await anyio.sleep(60.0)
    assert len(world.creations) == 1


async def test_a_node_claim_that_never_goes_is_not_counted_on() -> None:
    claim = node_claim("theirs", uid="theirs", deletionTimestamp="2026-01-01T00:00:00Z")
    world = await bought(claim, pod("web"), after_s=5.0)
    assert len(world.creations) == 1


async def test_a_node_claim_that_names_everybodys_pods_keeps_them_waiting_for_a_while_only() -> None:
    """Whoever may write NodeClaims can name any pods in the annotation."""
    waiting = [pod(f"web-{index}", cpu="3") for index in range(3)]
    world = await bought(without_machine("theirs", *waiting), *waiting, after_s=LAUNCHED_S_MAX + 60.0)
    assert len(world.creations) == 3


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


def machine_of_claim(name: str) -> Document:
    """A NodeClaim that has its machine, and whose node has joined."""
    claim = node_claim(name, machine=f"cloud://{name}")
    return {**claim, "status": {**claim["status"], "nodeName": name}}


async def test_the_node_claim_of_a_node_that_cannot_be_decoded_is_not_waited_for() -> None:
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), machine_of_claim("odd"), pod("web"))
    bench.see_broken("Node", "odd")
    async with bench.running():
        await anyio.sleep(5.0)
        assert len(world.creations) == 1
    assert bench.errors == []


async def test_a_node_claim_on_its_way_takes_the_pod_until_its_node_cannot_be_decoded() -> None:
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), machine_of_claim("late"), pod("web"))
    async with bench.running():
        await anyio.sleep(5.0)
        assert world.creations == []
        bench.see_broken("Node", "late")
        await anyio.sleep(15.0)
    assert len(world.creations) == 1


@pytest.mark.parametrize("kind", ["Node", "NodeClaim"])
async def test_an_object_that_was_bought_and_cannot_be_decoded_keeps_nobody_waiting(kind: str) -> None:
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), pod("web"))
    world.lag_s = 10_000.0
    async with bench.running():
        await anyio.sleep(3.0)
        (name,) = world.creations
        bench.see_broken(kind, name)
        world.lag_s = 0.0
        bench.put(pod("other", cpu="3"))
        await anyio.sleep(60.0)
    # No second one for the same pod: it might be one more that cannot be decoded.
    assert len(set(world.creations)) == 2


async def test_pods_on_a_node_that_cannot_be_decoded_count_and_it_stays() -> None:
    world = World()
    bench = Bench(world)
    bench.put(on_demand_pool(), machine_of_claim("odd"), pod("old", node="odd"))
    bench.see_broken("Node", "odd")
    async with bench.running(disrupts=True):
        await anyio.sleep(120.0)
    assert (world.removals, bench.errors) == ([], [])


@pytest.mark.parametrize("is_on", [True, False])
async def test_node_overlays_count_as_soon_as_they_are_seen_if_their_gate_is_on(is_on: bool) -> None:
    world = World()
    bench = Bench(world, settings=Settings(uses_overlays=is_on))
    cheap = {"requirements": [requirement("node.kubernetes.io/instance-type", "In", "default")], "price": "0.01"}
    bench.put(on_demand_pool(), pod("web-0"))
    async with bench.running():
        await anyio.sleep(5.0)
        if is_on:
            bench.put({"kind": "NodeOverlay", "metadata": {"name": "cheap"}, "spec": cheap})
        bench.put(pod("web-1", cpu="1500m"))
        await anyio.sleep(15.0)
    types = [plan.nodes[0].node.instance_type.name for plan in bench.plans if plan.nodes]
    assert types == ["small", "default" if is_on else "small"]


async def test_a_node_overlay_that_does_not_count_is_said_and_holds_up_nothing() -> None:
    bench = Bench(World(), settings=Settings(uses_overlays=True))
    bench.put(on_demand_pool(), pod("web-0"))
    bench.put({"kind": "NodeOverlay", "metadata": {"name": "odd"}, "spec": {"requirements": [], "price": "much"}})
    async with bench.running():
        await anyio.sleep(30.0)
    assert len(bench.plans) > 1
    assert bench.plans[-1].warnings[0].startswith("NodeOverlay odd is not counted")
    assert bench.errors == []
