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
from tests.unit.daemon.loop_bench import LoopBench, settle
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return VIRTUAL_TIME


def pod_document(item: Pod, node_name: str | None) -> dict[str, Any]:
    metadata = {"name": item.metadata.name, "namespace": "default", "uid": item.uid}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node_name}}


@asynccontextmanager
async def confirming(bench: LoopBench) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.binding_cycles.confirmations.run)
        async with bench.running():
            yield
        tasks.cancel_scope.cancel()


async def test_a_pod_that_was_answered_as_bound_and_is_not_is_scheduled_again_and_its_room_is_free() -> None:
    bench, web = LoopBench(), pod("web", cpu="1")
    bench.wire.answer = lambda request: pod_document(web, None) if request.method == "GET" else {}
    bench.put(node("n1", cpu="1"), web)
    async with confirming(bench):
        assert bench.bindings == [("web", "n1")]
        await anyio.sleep(14.0)
        assert len(bench.bindings) == 1
        await anyio.sleep(20.0)
        assert bench.bindings == [("web", "n1")] * 2
        bench.put(web.on_node("n1"))
        await anyio.sleep(60.0)
        assert len(bench.bindings) == 2
    assert not bench.cache.is_assumed(web.uid)
    assert bench.place(web) is QueueState.GONE


async def test_room_that_was_taken_for_nothing_lets_another_pod_in() -> None:
    bench, web = LoopBench(), pod("web", cpu="1")
    bench.wire.answer = lambda request: pod_document(web, None) if request.method == "GET" else {}
    bench.put(node("n1", cpu="1"), web)
    async with confirming(bench):
        bench.known[web.key] = pod("web", uid="another")
        bench.put(pod("other", cpu="1"))
        await anyio.sleep(40.0)
        assert ("other", "n1") in bench.bindings


async def test_a_pod_that_is_seen_bound_is_not_looked_up() -> None:
    bench, web = LoopBench(), pod("web")
    bench.put(node("n1"), web)
    async with confirming(bench):
        bench.put(web.on_node("n1"))
        await anyio.sleep(100.0)
    assert bench.requests_sent("GET") == []


async def test_a_pod_that_a_restore_has_made_pending_again_is_left_to_its_new_binding_cycle() -> None:
    bench, web = LoopBench(), pod("web", cpu="1")
    bench.wire.answer = lambda request: pod_document(web, None) if request.method == "GET" else {}
    bench.put(node("n1", cpu="1"), web)
    async with confirming(bench):
        bench.put(web.on_node("n1"))
        bench.wire.latency_of = lambda request: 60.0 if request.method == "POST" else 0.0
        bench.put(web)
        await anyio.sleep(50.0)
        assert bench.bindings == [("web", "n1")] * 2
        assert bench.requests_sent("GET") == []
        bench.put(web.on_node("n1"))
        await anyio.sleep(50.0)
    assert len(bench.bindings) == 2


@pytest.mark.parametrize("answer", [NotFound("gone"), Unreachable("down"), "n1", "n2"])
async def test_a_pod_that_is_bound_gone_or_not_readable_stays_where_it_is_and_is_looked_up_again(answer: Any) -> None:
    bench, web = LoopBench(), pod("web")

    def answers(request: Request) -> Any:
        if request.method != "GET":
            return {}
        if isinstance(answer, Exception):
            raise answer
        return pod_document(web, answer)

    bench.wire.answer = answers
    bench.put(node("n1"), web)
    async with confirming(bench):
        await anyio.sleep(100.0)
        assert bench.cache.is_assumed(web.uid)
    assert len(bench.bindings) == 1
    assert len(bench.requests_sent("GET")) > 1


async def test_few_are_looked_up_where_the_watch_is_far_behind() -> None:
    bench = LoopBench()
    pods = {f"web-{index}": pod(f"web-{index}") for index in range(500)}
    bench.wire.answer = lambda request: (
        pod_document(pods[request.path.rpartition("/")[2]], "n1") if request.method == "GET" else {}
    )
    bench.put(node("n1", pods=1000, cpu="1000"), *pods.values())
    async with confirming(bench):
        await anyio.sleep(31.0)
        assert len(bench.bindings) == 500
        assert len(bench.requests_sent("GET")) == 16


@pytest.mark.long
async def test_pods_that_are_seen_bound_are_not_kept() -> None:
    bench = LoopBench()
    bench.put(node("n1", pods=10_000, cpu="10000"))
    async with confirming(bench):
        for index in range(1500):
            item = pod(f"web-{index}")
            bench.put(item)
            await settle()
            bench.put(item.on_node("n1"))
        assert len(bench.binding_cycles.confirmations._recent) <= 1001
