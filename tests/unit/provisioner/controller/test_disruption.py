"""The loop that removes nodes, in virtual time: the second look, replacements, and errors on the way."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from podium.objects.api_errors import Forbidden
from tests.gang_manifests import UPSTREAM, group
from tests.unit.provisioner.clusters import Document, managed_node, node_claim, pod
from tests.unit.provisioner.controller.bench import Bench, World, on_demand_pool
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


async def with_a_node(cpu: str = "1") -> tuple[World, str, Document]:
    """A world in which a node was bought for a pod, which runs there."""
    world = World()
    bench = Bench(world)
    waiting = pod("web-0", cpu=cpu, memory="10Mi")
    bench.put(on_demand_pool(), waiting)
    async with bench.running():
        await anyio.sleep(2.0)
    (name,) = world.creations
    running = {**waiting, "spec": {**waiting["spec"], "nodeName": name}, "status": {"phase": "Running"}}
    world.documents["Pod", "web-0"] = running
    return world, name, running


async def test_an_empty_node_goes_once_it_was_looked_at_twice(anyio_backend: object) -> None:
    world, name, running = await with_a_node()
    bench = Bench(world)
    bench.drop(running)
    async with bench.running(disrupts=True):
        await anyio.sleep(14.0)
        assert world.removals == []
        await anyio.sleep(4.0)
    assert world.removals == [name]


async def test_a_node_that_gets_a_pod_meanwhile_stays(anyio_backend: object) -> None:
    world, _, running = await with_a_node("3")
    bench = Bench(world)
    bench.drop(running)
    async with bench.running(disrupts=True):
        await anyio.sleep(10.0)
        bench.put(running)
        await anyio.sleep(30.0)
    assert world.removals == []


async def test_a_node_that_is_too_large_is_replaced_before_it_goes(anyio_backend: object) -> None:
    world, name, running = await with_a_node("3")
    small = {**running, "spec": {**running["spec"], "containers": [{"name": "main"}]}}
    bench = Bench(world)
    bench.put(small)
    async with bench.running(disrupts=True):
        await anyio.sleep(18.0)
    assert world.removals == [name]
    assert len(world.creations) == 2
    assert bench.removals[0].replacements[0].name == world.creations[1]


async def test_a_node_stays_if_it_must_not_go_any_more_once_its_replacement_is_there(anyio_backend: object) -> None:
    world, _, running = await with_a_node("3")
    small = {**running, "spec": {**running["spec"], "containers": [{"name": "main"}]}}
    bench = Bench(world)
    bench.put(small)
    world.objection = "the gang default/train needs 2 of its pods, and 1 would be left while others move"
    with capture_logs() as logs:
        async with bench.running(disrupts=True):
            await anyio.sleep(18.0)
    assert (world.removals, len(world.creations), bench.removals) == ([], 2, [])
    assert [entry["why"] for entry in logs if entry["event"] == "Nodes are not removed after all"] == [world.objection]


async def test_a_removal_by_karpenters_rules_that_breaks_a_gang_says_so(anyio_backend: object) -> None:
    world, name, running = await with_a_node("3")
    member = {**running["spec"], "schedulingGroup": {"podGroupName": "train"}, "containers": [{"name": "main"}]}
    bench = Bench(world)
    bench.put({**running, "spec": member}, group(UPSTREAM, 1))
    with capture_logs() as logs:
        async with bench.running(disrupts=True):
            await anyio.sleep(18.0)
    assert world.removals == [name]
    text = "the gang default/train needs 1 of its pods, and 0 would be left while others move, since "
    assert [entry["what"].startswith(text) for entry in logs if entry["event"] == "A removal ignores something"] == [
        True
    ]
    assert [warning.startswith(text) for warning in bench.removals[0].warnings] == [True]


async def test_a_node_stays_if_its_replacement_cannot_be_bought(anyio_backend: object) -> None:
    world, _, running = await with_a_node("3")
    small = {**running, "spec": {**running["spec"], "containers": [{"name": "main"}]}}
    bench = Bench(world)
    bench.put(small)
    world.loses = [Forbidden("no")]
    async with bench.running(disrupts=True):
        await anyio.sleep(17.0)
        assert bench.errors == ["disruption"]
        assert world.removals == []
        await anyio.sleep(45.0)
    assert world.removals == world.creations[:1]


async def test_a_node_that_pods_are_planned_onto_stays(anyio_backend: object) -> None:
    world, _, running = await with_a_node("3")
    bench = Bench(world)
    bench.drop(running)
    async with bench.running(disrupts=True):
        await anyio.sleep(0.5)
        bench.put(pod("web-1", memory="10Mi"))
        await anyio.sleep(20.0)
    assert world.removals == []


async def test_after_a_restart_nothing_goes_before_the_pods_that_wait_were_planned(anyio_backend: object) -> None:
    world, name, running = await with_a_node("3")
    bench = Bench(world)
    bench.drop(running)
    bench.put(pod("web-0", cpu="3", memory="10Mi"))
    async with bench.running(disrupts=True):
        for _ in range(40):
            await anyio.sleep(1.0)
            # The scheduler takes its time, and the nomination lasts 20 s.
    assert (world.removals, world.creations) == ([], [name])


async def test_a_node_whose_removal_is_refused_keeps_no_other_and_is_tried_again() -> None:
    world = World()
    bench = Bench(world)
    waiting = [pod(f"web-{index}", cpu="3") for index in range(3)]
    bench.put(on_demand_pool(), *waiting)
    async with bench.running():
        await anyio.sleep(2.0)
    for item in waiting:
        bench.drop(item)
    world.kept_nodes = set(world.creations[:1])
    async with Bench(world).running(disrupts=True):
        await anyio.sleep(30.0)
        assert sorted(world.removals) == sorted(world.creations[1:])
        world.kept_nodes.clear()
        await anyio.sleep(60.0)
    assert sorted(world.removals) == sorted(world.creations)


async def test_nodes_that_only_another_can_remove_are_left_alone() -> None:
    for removes_own_only in (False, True):
        world = World()
        bench = Bench(world, removes_own_only=removes_own_only)
        conditions = [{"type": kind, "status": "True"} for kind in ("Launched", "Registered", "Initialized")]
        claim = node_claim("theirs")
        claim["status"]["conditions"] = conditions
        claim["spec"]["nodeClassRef"] = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
        node = managed_node("theirs")
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        bench.put(on_demand_pool(), node, claim)
        async with bench.running(disrupts=True):
            await anyio.sleep(60.0)
        assert world.removals == ([] if removes_own_only else ["theirs"])
