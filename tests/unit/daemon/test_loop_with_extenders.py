"""The loop while extenders are asked; they answer after a second, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import anyio
import pytest

from podium.config import Extender, ExtenderManagedResource
from podium.framework.contract.questions import ExtenderFailed, Filtered
from podium.framework.contract.status import SKIP, Status, error_status, unschedulable
from podium.framework.cycle.extenders import Extenders
from podium.objects.core import Pod
from podium.queues import QueueState
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, changed, fits, settled
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

GPU = "example.com/gpu"
EXTENDER = Extender("http://x", filter_verb="filter", managed_resources=(ExtenderManagedResource(GPU),))


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def let_all_through(question: Any) -> Any:
    return Filtered([each.name for each in question.nodes], {}, {})


class Pool:
    """Answers questions after a second."""

    def __init__(self, reply: Callable[[Any], Any] = let_all_through, bound: Status | None = SKIP) -> None:
        self.reply = reply
        self.questions: list[Any] = []
        self.waiting_to_bind = 0
        self._bound = bound

    async def answer(self, question: Any) -> Any:
        self.questions.append(question)
        await anyio.sleep(1.0)
        return self.reply(question)

    async def bind(self, item: Pod, node_name: str) -> Status | None:
        return self._bound

    def backlog(self) -> int:
        return self.waiting_to_bind


def bench(pool: Pool, *classes: type[Any]) -> LoopBench:
    return LoopBench(*classes, extenders=Extenders([EXTENDER], Random(1)), pool=pool)


def wants_gpu(name: str, **fields: Any) -> Pod:
    return pod(name, requests={GPU: "1"}, **fields)


async def test_a_pod_is_placed_as_the_extender_has_answered() -> None:
    pool = Pool(lambda question: Filtered(["n2"], {}, {}))
    made = bench(pool)
    made.put(node("n1"), node("n2"), wants_gpu("web-1"))
    async with made.running():
        await anyio.sleep(0.5)
        assert made.bindings == []
        await anyio.sleep(0.6)
        assert made.bindings == [("web-1", "n2")]
    assert made.metrics.value("scheduler_scheduling_algorithm_duration_seconds") == 1


async def test_one_pod_at_a_time_is_asked_about_and_the_others_wait() -> None:
    pool = Pool()
    made = bench(pool)
    made.put(node("n1"), wants_gpu("a"), wants_gpu("b"), pod("c"))
    async with made.running():
        assert [question.pod.metadata.name for question in pool.questions] == ["a"]
        await anyio.sleep(1.1)
        assert [question.pod.metadata.name for question in pool.questions] == ["a", "b"]
        await anyio.sleep(1.1)
        assert [name for name, _ in made.bindings] == ["a", "b", "c"]


async def test_pods_that_no_extender_is_interested_in_do_not_wait_for_one() -> None:
    made = bench(Pool())
    made.put(node("n1"), pod("web-1"))
    async with made.running():
        assert made.bindings == [("web-1", "n1")]


async def test_what_happens_while_an_extender_thinks_counts_for_the_next_attempt() -> None:
    pool = Pool()
    made = bench(pool)
    made.put(node("n1"), wants_gpu("a"))
    async with made.running():
        await anyio.sleep(0.5)
        made.put(node("n2"), pod("c", node="n1"))
        assert len(made.cache.snapshot()) == 1
        await anyio.sleep(0.6)
        assert made.bindings == [("a", "n1")]
        assert len(made.cache.snapshot()) == 2


async def test_a_pod_that_is_deleted_while_an_extender_thinks_is_not_put_back() -> None:
    made = bench(Pool(lambda question: Filtered([], {"n1": "busy"}, {})))
    web = wants_gpu("web-1")
    made.put(node("n1"), web)
    async with made.running():
        await anyio.sleep(0.5)
        made.delete(web)
        await anyio.sleep(0.6)
        assert made.place(web) is QueueState.GONE
        assert made.conditions == []
    assert made.queue.statistics().in_flight == 0


async def test_a_pod_that_an_extender_rejects_comes_back_with_any_event() -> None:
    pool = Pool(lambda question: Filtered([], {"n1": "busy"}, {}))
    made = bench(pool)
    web = wants_gpu("web-1")
    made.put(node("n1"), web)
    async with made.running():
        await anyio.sleep(1.1)
        assert made.place(web) is QueueState.UNSCHEDULABLE
        assert made.conditions == [("Unschedulable", "0/1 nodes are available: 1 busy.")]
        made.put(changed(node("n1"), labels={"a": "b"}))
        assert made.place(web) is QueueState.BACKOFF


async def test_an_event_while_the_extender_thinks_brings_the_rejected_pod_back() -> None:
    pool = Pool(lambda question: Filtered([], {"n1": "busy"}, {}))
    made = bench(pool)
    made.put(node("n1"), wants_gpu("web-1"))
    async with made.running():
        await anyio.sleep(0.5)
        made.put(node("n2"))
        await anyio.sleep(0.6)
        assert [len(question.nodes) for question in pool.questions] == [1, 2]


async def test_a_failing_extender_puts_the_pod_into_error_backoff_with_its_name() -> None:
    made = bench(Pool(lambda question: ExtenderFailed(question.extender, "failed filter: code 500")))
    web = wants_gpu("web-1")
    made.put(node("n1"), web)
    async with made.running():
        await anyio.sleep(1.1)
        assert made.place(web) is QueueState.ERROR_BACKOFF
        assert made.conditions == [("SchedulerError", 'extender "http://x": failed filter: code 500')]
    assert made.attempts("error") == 1


async def test_the_extender_is_not_asked_where_the_plugins_leave_no_node() -> None:
    pool = Pool()
    made = bench(pool, fits(lambda name: unschedulable("full")))
    made.put(node("n1"), wants_gpu("web-1"))
    async with made.running():
        assert made.conditions == [("Unschedulable", "0/1 nodes are available: 1 full.")]
    assert pool.questions == []


async def test_an_extender_binds_before_the_plugins() -> None:
    made = bench(Pool(bound=None))
    made.put(node("n1"), pod("web-1"))
    async with made.running():
        assert made.bindings == []
        assert made.recorder.told == [("Scheduled", "Successfully assigned default/web-1 to n1")]


async def test_a_binding_that_the_extender_refuses_is_undone() -> None:
    made = bench(Pool(bound=error_status('extender "http://x": no licence')))
    web = pod("web-1")
    made.put(node("n1"), web)
    async with made.running():
        assert made.conditions == [("SchedulerError", 'extender "http://x": no licence')]
        assert not made.cache.is_assumed(web.uid)
        assert made.place(web) is QueueState.ERROR_BACKOFF


async def test_no_pod_is_decided_on_while_too_many_wait_for_the_binding_extender() -> None:
    pool = Pool()
    pool.waiting_to_bind = 129
    made = bench(pool)
    made.put(node("n1"), pod("a"))
    async with made.running():
        made.put(pod("b"))
        await settled()
        assert [name for name, _ in made.bindings] == ["a"]
        pool.waiting_to_bind = 0
        await anyio.sleep(1.1)
        assert [name for name, _ in made.bindings] == ["a", "b"]


async def test_an_attempt_that_waits_for_an_extender_does_not_keep_the_loop_from_ending() -> None:
    made = bench(Pool())
    made.put(node("n1"), wants_gpu("a"), wants_gpu("b"))
    async with made.running():
        await anyio.sleep(0.5)
        begun_s = anyio.current_time()
    assert anyio.current_time() == begun_s
    assert made.bindings == []
    assert made.queue.statistics().in_flight == 0
    assert len(made.cache.snapshot()) == 1
