from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from podium.objects.api_errors import NotFound, Unreachable
from podium.objects.core import Pod
from podium.queues import QueueState
from tests.builders import node, pod
from tests.unit.binder.builders import Request
from tests.unit.daemon.world import World, settled
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


def seen(item: Pod, node_name: str | None) -> dict[str, Any]:
    metadata = {"name": item.metadata.name, "namespace": "default", "uid": item.uid}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node_name}}


@asynccontextmanager
async def confirming(world: World) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.loop.confirmations.run)
        async with world.running():
            yield
        tasks.cancel_scope.cancel()


async def test_a_pod_that_was_answered_as_bound_and_is_not_is_scheduled_again_and_its_room_is_free() -> None:
    world, web = World(), pod("web", cpu="1")
    world.wire.answer = lambda request: seen(web, None) if request.method == "GET" else {}
    world.put(node("n1", cpu="1"), web)
    async with confirming(world):
        assert world.bindings == [("web", "n1")]
        await anyio.sleep(14.0)
        assert len(world.bindings) == 1
        await anyio.sleep(20.0)
        assert world.bindings == [("web", "n1")] * 2
        world.put(web.on_node("n1"))
        await anyio.sleep(60.0)
        assert len(world.bindings) == 2
    assert not world.cache.is_assumed(web.uid)
    assert world.place(web) is QueueState.GONE


async def test_room_that_was_taken_for_nothing_lets_another_pod_in() -> None:
    world, web = World(), pod("web", cpu="1")
    world.wire.answer = lambda request: seen(web, None) if request.method == "GET" else {}
    world.put(node("n1", cpu="1"), web)
    async with confirming(world):
        world.known[web.key] = pod("web", uid="another")
        world.put(pod("other", cpu="1"))
        await anyio.sleep(40.0)
        assert ("other", "n1") in world.bindings


async def test_a_pod_that_is_seen_bound_is_not_looked_up() -> None:
    world, web = World(), pod("web")
    world.put(node("n1"), web)
    async with confirming(world):
        world.put(web.on_node("n1"))
        await anyio.sleep(100.0)
    assert world.sent("GET") == []


async def test_a_pod_that_a_restore_has_made_pending_again_is_left_to_its_new_binding_cycle() -> None:
    world, web = World(), pod("web", cpu="1")
    world.wire.answer = lambda request: seen(web, None) if request.method == "GET" else {}
    world.put(node("n1", cpu="1"), web)
    async with confirming(world):
        world.put(web.on_node("n1"))
        world.wire.latency_of = lambda request: 60.0 if request.method == "POST" else 0.0
        world.put(web)
        await anyio.sleep(50.0)
        assert world.bindings == [("web", "n1")] * 2
        assert world.sent("GET") == []
        world.put(web.on_node("n1"))
        await anyio.sleep(50.0)
    assert len(world.bindings) == 2


@pytest.mark.parametrize("answer", [NotFound("gone"), Unreachable("down"), "n1", "n2"])
async def test_a_pod_that_is_bound_gone_or_not_readable_stays_where_it_is_and_is_looked_up_again(answer: Any) -> None:
    world, web = World(), pod("web")

    def answers(request: Request) -> Any:
        if request.method != "GET":
            return {}
        if isinstance(answer, Exception):
            raise answer
        return seen(web, answer)

    world.wire.answer = answers
    world.put(node("n1"), web)
    async with confirming(world):
        await anyio.sleep(100.0)
        assert world.cache.is_assumed(web.uid)
    assert len(world.bindings) == 1
    assert len(world.sent("GET")) > 1


async def test_few_are_looked_up_where_the_watch_is_far_behind() -> None:
    world = World()
    pods = {f"web-{index}": pod(f"web-{index}") for index in range(500)}
    world.wire.answer = lambda request: (
        seen(pods[request.path.rpartition("/")[2]], "n1") if request.method == "GET" else {}
    )
    world.put(node("n1", pods=1000, cpu="1000"), *pods.values())
    async with confirming(world):
        await anyio.sleep(31.0)
        assert len(world.bindings) == 500
        assert len(world.sent("GET")) == 16


async def test_pods_that_are_seen_bound_are_not_kept() -> None:
    world = World()
    world.put(node("n1", pods=10_000, cpu="10000"))
    async with confirming(world):
        for index in range(3000):
            item = pod(f"web-{index}")
            world.put(item)
            await settled()
            world.put(item.on_node("n1"))
        assert len(world.loop.confirmations._recent) <= 1001
