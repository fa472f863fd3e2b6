"""Nodes that a provider refuses, and look-ups that it does not answer, in virtual time."""

from __future__ import annotations

import anyio
import pytest

from podium.objects.api_errors import ApiError, Forbidden, Invalid, Malformed, OutcomeUnknown
from podium.provisioner.controller.purchasing import LOOKED_UP_S_MAX
from tests.unit.provisioner.clusters import pod
from tests.unit.provisioner.controller.bench import Bench, World, on_demand_pool
from tests.unit.provisioner.fleets import machine
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


@pytest.mark.long
@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("no")])
async def test_a_node_that_is_refused_for_good_keeps_no_other_pod_waiting_for_long(error: ApiError) -> None:
    world = World()
    world.refused_pods = {"odd"}
    world.refusal = error
    bench = Bench(world)
    bench.put(on_demand_pool(), pod("odd", cpu="3"))
    async with bench.running():
        await anyio.sleep(600.0)
        bench.put(pod("web", cpu="3"))
        await anyio.sleep(20.0)
    assert world.creations


async def test_a_node_that_is_refused_does_not_slow_down_the_loop() -> None:
    world = World()
    world.refused_pods = {"odd"}
    bench = Bench(world)
    bench.put(on_demand_pool(), pod("odd", cpu="3"))
    async with bench.running():
        await anyio.sleep(600.0)
        bench.put(pod("web", cpu="3"))
        # A batch of one pod takes a second, however often another pod's node was refused.
        await anyio.sleep(3.0)
    assert len(world.creations) == 1
    assert bench.errors == []
    assert 30 < len(bench.refused) < 60


async def test_a_replacement_that_is_refused_keeps_no_other_node() -> None:
    world = World()
    world.refused_pods = {"odd"}
    bench = Bench(world)
    pool = on_demand_pool()
    large = machine("large", 4, **{"node.kubernetes.io/instance-type": "default"})
    idle = machine("idle", 2, **{"node.kubernetes.io/instance-type": "small"})
    bench.put(pool, *large, pod("odd", cpu="500m", node="large", status={"phase": "Running"}))
    async with bench.running(disrupts=True):
        await anyio.sleep(60.0)
        bench.put(*idle)
        await anyio.sleep(90.0)
    assert world.removals == ["idle"]


async def test_a_look_up_that_is_never_answered_is_not_waited_for_without_end() -> None:
    world = World()
    world.loses = [OutcomeUnknown("connection reset by peer")]
    world.list_error = Malformed("not a NodeList: <html>")
    bench = Bench(world)
    bench.put(on_demand_pool(), pod("web"))
    async with bench.running():
        await anyio.sleep(LOOKED_UP_S_MAX - 5.0)
        assert world.creations == []
        await anyio.sleep(60.0)
    assert len(world.creations) == 1
