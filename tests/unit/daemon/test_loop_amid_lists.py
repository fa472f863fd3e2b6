"""The loop while a new list is on its way, or is taken in."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from podium.client.consistency import PATIENCE_S
from podium.framework.contract.questions import Filtered
from podium.framework.contract.status import unschedulable
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, fits, settled
from tests.unit.daemon.test_loop_with_extenders import Pool, bench, wants_gpu
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


async def test_nothing_is_decided_while_a_list_is_taken_in() -> None:
    full: list[str] = []
    made = LoopBench(fits(lambda name: unschedulable("full") if name in full else None))
    async with made.running():
        with made.consistency.changing():
            made.put(node("n1"), node("n2"), pod("web-1"), pod("web-2"))
            await anyio.sleep(3600.0)
            # What is on the node comes last.
            full.append("n1")
        await settled()
        assert made.bindings == [("web-1", "n2"), ("web-2", "n2")]


async def test_a_list_that_is_long_in_coming_is_waited_for_so_long_and_no_longer() -> None:
    made = LoopBench()
    made.put(node("n1"))
    async with made.running():
        made.consistency.note_outdated("pods")
        made.put(pod("web-1"))
        await anyio.sleep(PATIENCE_S - 0.1)
        assert made.bindings == []
        await anyio.sleep(0.2)
        assert made.bindings == [("web-1", "n1")]


async def test_decisions_go_on_as_soon_as_the_list_is_there() -> None:
    made = LoopBench()
    made.put(node("n1"))
    async with made.running():
        made.consistency.note_outdated("pods")
        made.put(pod("web-1"))
        await anyio.sleep(5.0)
        made.consistency.current("pods")
        await settled()
        assert made.bindings == [("web-1", "n1")]


async def test_waiting_for_a_list_delays_no_shutdown() -> None:
    made = LoopBench()
    made.put(node("n1"))
    async with made.running():
        made.consistency.note_outdated("pods")
        made.put(pod("web-1"))
        await anyio.sleep(1.0)
        made.loop.stop()
        with anyio.fail_after(0.1):
            await made.loop.wait_ended()
    assert made.bindings == []


async def test_what_was_decided_on_before_a_list_came_is_decided_on_again() -> None:
    asked: list[list[str]] = []

    def reply(question: Any) -> Filtered:
        asked.append([each.name for each in question.nodes])
        return Filtered(asked[-1], {}, {})

    made = bench(Pool(reply))
    made.put(node("n1"), wants_gpu("web-1"))
    async with made.running():
        await anyio.sleep(0.5)
        with made.consistency.changing():
            made.node_handler.on_delete(made.nodes.pop("n1"))
            made.put(node("n2"))
        await anyio.sleep(0.6)
        assert made.bindings == []
        await anyio.sleep(1.0)
        assert made.bindings == [("web-1", "n2")]
    assert asked == [["n1"], ["n2"]]
    assert made.attempts("scheduled") == 1


async def test_a_pod_that_is_gone_by_the_new_list_is_not_decided_on_again() -> None:
    made = bench(Pool())
    item = wants_gpu("web-1")
    made.put(node("n1"), item)
    async with made.running():
        await anyio.sleep(0.5)
        with made.consistency.changing():
            made.delete(item)
        await anyio.sleep(2.0)
        assert made.bindings == []
        assert made.queue.statistics().in_flight == 0
