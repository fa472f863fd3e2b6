"""The loop while a new list is on its way, or is taken in."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from podium.client.consistency import PATIENCE_S
from podium.framework.contract.questions import Filtered
from podium.framework.contract.status import unschedulable
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, fits, settle
from tests.unit.daemon.test_loop_with_extenders import Pool, bench, wants_gpu
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


async def test_nothing_is_decided_while_a_list_is_taken_in() -> None:
    full: list[str] = []
    loop_bench = LoopBench(fits(lambda name: unschedulable("full") if name in full else None))
    async with loop_bench.running():
        with loop_bench.consistency.changing():
            loop_bench.put(node("n1"), node("n2"), pod("web-1"), pod("web-2"))
            await anyio.sleep(3600.0)
            # What is on the node comes last.
            full.append("n1")
        await settle()
        assert loop_bench.bindings == [("web-1", "n2"), ("web-2", "n2")]


async def test_a_list_that_is_long_in_coming_is_waited_for_so_long_and_no_longer() -> None:
    loop_bench = LoopBench()
    loop_bench.put(node("n1"))
    async with loop_bench.running():
        loop_bench.consistency.note_outdated("pods")
        loop_bench.put(pod("web-1"))
        await anyio.sleep(PATIENCE_S - 0.1)
        assert loop_bench.bindings == []
        await anyio.sleep(0.2)
        assert loop_bench.bindings == [("web-1", "n1")]


async def test_decisions_go_on_as_soon_as_the_list_is_there() -> None:
    loop_bench = LoopBench()
    loop_bench.put(node("n1"))
    async with loop_bench.running():
        loop_bench.consistency.note_outdated("pods")
        loop_bench.put(pod("web-1"))
        await anyio.sleep(5.0)
        loop_bench.consistency.current("pods")
        await settle()
        assert loop_bench.bindings == [("web-1", "n1")]


async def test_waiting_for_a_list_delays_no_shutdown() -> None:
    loop_bench = LoopBench()
    loop_bench.put(node("n1"))
    async with loop_bench.running():
        loop_bench.consistency.note_outdated("pods")
        loop_bench.put(pod("web-1"))
        await anyio.sleep(1.0)
        loop_bench.loop.stop()
        with anyio.fail_after(0.1):
            await loop_bench.loop.wait_ended()
    assert loop_bench.bindings == []


async def test_what_was_decided_on_before_a_list_came_is_decided_on_again() -> None:
    questions: list[list[str]] = []

    def reply(question: Any) -> Filtered:
        questions.append([node.name for node in question.nodes])
        return Filtered(questions[-1], {}, {})

    bench_with_extender = bench(Pool(reply))
    bench_with_extender.put(node("n1"), wants_gpu("web-1"))
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        with bench_with_extender.consistency.changing():
            bench_with_extender.node_handler.on_delete(bench_with_extender.nodes.pop("n1"))
            bench_with_extender.put(node("n2"))
        await anyio.sleep(0.6)
        assert bench_with_extender.bindings == []
        await anyio.sleep(1.0)
        assert bench_with_extender.bindings == [("web-1", "n2")]
    assert questions == [["n1"], ["n2"]]
    assert bench_with_extender.attempts("scheduled") == 1


async def test_a_pod_that_is_gone_by_the_new_list_is_not_decided_on_again() -> None:
    bench_with_extender = bench(Pool())
    item = wants_gpu("web-1")
    bench_with_extender.put(node("n1"), item)
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        with bench_with_extender.consistency.changing():
            bench_with_extender.delete(item)
        await anyio.sleep(2.0)
        assert bench_with_extender.bindings == []
        assert bench_with_extender.queue.statistics().in_flight == 0
