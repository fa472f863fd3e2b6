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
from tests.unit.daemon.loop_bench import LoopBench, fits, settle, with_changes
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

GPU = "example.com/gpu"
EXTENDER = Extender("http://x", filter_verb="filter", managed_resources=(ExtenderManagedResource(GPU),))


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def let_all_through(question: Any) -> Any:
    return Filtered([node.name for node in question.nodes], {}, {})


class Pool:
    """Answers questions after a second."""

    def __init__(self, reply: Callable[[Any], Any] = let_all_through, bind_status: Status | None = SKIP) -> None:
        self.reply = reply
        self.questions: list[Any] = []
        self.waiting_to_bind = 0
        self._bound = bind_status

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
    bench_with_extender = bench(pool)
    bench_with_extender.put(node("n1"), node("n2"), wants_gpu("web-1"))
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        assert bench_with_extender.bindings == []
        await anyio.sleep(0.6)
        assert bench_with_extender.bindings == [("web-1", "n2")]
    assert bench_with_extender.metrics.value("scheduler_scheduling_algorithm_duration_seconds") == 1


async def test_one_pod_at_a_time_is_asked_about_and_the_others_wait() -> None:
    pool = Pool()
    bench_with_extender = bench(pool)
    bench_with_extender.put(node("n1"), wants_gpu("a"), wants_gpu("b"), pod("c"))
    async with bench_with_extender.running():
        assert [question.pod.metadata.name for question in pool.questions] == ["a"]
        await anyio.sleep(1.1)
        assert [question.pod.metadata.name for question in pool.questions] == ["a", "b"]
        await anyio.sleep(1.1)
        assert [name for name, _ in bench_with_extender.bindings] == ["a", "b", "c"]


async def test_pods_that_no_extender_is_interested_in_do_not_wait_for_one() -> None:
    bench_with_extender = bench(Pool())
    bench_with_extender.put(node("n1"), pod("web-1"))
    async with bench_with_extender.running():
        assert bench_with_extender.bindings == [("web-1", "n1")]


async def test_what_happens_while_an_extender_thinks_counts_for_the_next_attempt() -> None:
    pool = Pool()
    bench_with_extender = bench(pool)
    bench_with_extender.put(node("n1"), wants_gpu("a"))
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        bench_with_extender.put(node("n2"), pod("c", node="n1"))
        assert len(bench_with_extender.cache.snapshot()) == 1
        await anyio.sleep(0.6)
        assert bench_with_extender.bindings == [("a", "n1")]
        assert len(bench_with_extender.cache.snapshot()) == 2


async def test_a_pod_that_is_deleted_while_an_extender_thinks_is_not_put_back() -> None:
    bench_with_extender = bench(Pool(lambda question: Filtered([], {"n1": "busy"}, {})))
    web = wants_gpu("web-1")
    bench_with_extender.put(node("n1"), web)
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        bench_with_extender.delete(web)
        await anyio.sleep(0.6)
        assert bench_with_extender.place(web) is QueueState.GONE
        assert bench_with_extender.conditions == []
    assert bench_with_extender.queue.statistics().in_flight == 0


async def test_a_pod_that_an_extender_rejects_comes_back_with_any_event() -> None:
    pool = Pool(lambda question: Filtered([], {"n1": "busy"}, {}))
    bench_with_extender = bench(pool)
    web = wants_gpu("web-1")
    bench_with_extender.put(node("n1"), web)
    async with bench_with_extender.running():
        await anyio.sleep(1.1)
        assert bench_with_extender.place(web) is QueueState.UNSCHEDULABLE
        assert bench_with_extender.conditions == [("Unschedulable", "0/1 nodes are available: 1 busy.")]
        bench_with_extender.put(with_changes(node("n1"), labels={"a": "b"}))
        assert bench_with_extender.place(web) is QueueState.BACKOFF


async def test_an_event_while_the_extender_thinks_brings_the_rejected_pod_back() -> None:
    pool = Pool(lambda question: Filtered([], {"n1": "busy"}, {}))
    bench_with_extender = bench(pool)
    bench_with_extender.put(node("n1"), wants_gpu("web-1"))
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        bench_with_extender.put(node("n2"))
        await anyio.sleep(0.6)
        assert [len(question.nodes) for question in pool.questions] == [1, 2]


async def test_a_failing_extender_puts_the_pod_into_error_backoff_with_its_name() -> None:
    bench_with_extender = bench(Pool(lambda question: ExtenderFailed(question.extender, "failed filter: code 500")))
    web = wants_gpu("web-1")
    bench_with_extender.put(node("n1"), web)
    async with bench_with_extender.running():
        await anyio.sleep(1.1)
        assert bench_with_extender.place(web) is QueueState.ERROR_BACKOFF
        assert bench_with_extender.conditions == [("SchedulerError", 'extender "http://x": failed filter: code 500')]
    assert bench_with_extender.attempts("error") == 1


async def test_the_extender_is_not_asked_where_the_plugins_leave_no_node() -> None:
    pool = Pool()
    bench_with_extender = bench(pool, fits(lambda name: unschedulable("full")))
    bench_with_extender.put(node("n1"), wants_gpu("web-1"))
    async with bench_with_extender.running():
        assert bench_with_extender.conditions == [("Unschedulable", "0/1 nodes are available: 1 full.")]
    assert pool.questions == []


async def test_an_extender_binds_before_the_plugins() -> None:
    bench_with_extender = bench(Pool(bind_status=None))
    bench_with_extender.put(node("n1"), pod("web-1"))
    async with bench_with_extender.running():
        assert bench_with_extender.bindings == []
        assert bench_with_extender.recorder.notes == [("Scheduled", "Successfully assigned default/web-1 to n1")]


async def test_a_binding_that_the_extender_refuses_is_undone() -> None:
    bench_with_extender = bench(Pool(bind_status=error_status('extender "http://x": no licence')))
    web = pod("web-1")
    bench_with_extender.put(node("n1"), web)
    async with bench_with_extender.running():
        assert bench_with_extender.conditions == [("SchedulerError", 'extender "http://x": no licence')]
        assert not bench_with_extender.cache.is_assumed(web.uid)
        assert bench_with_extender.place(web) is QueueState.ERROR_BACKOFF


async def test_no_pod_is_decided_on_while_too_many_wait_for_the_binding_extender() -> None:
    pool = Pool()
    pool.waiting_to_bind = 129
    bench_with_extender = bench(pool)
    bench_with_extender.put(node("n1"), pod("a"))
    async with bench_with_extender.running():
        bench_with_extender.put(pod("b"))
        await settle()
        assert [name for name, _ in bench_with_extender.bindings] == ["a"]
        pool.waiting_to_bind = 0
        await anyio.sleep(1.1)
        assert [name for name, _ in bench_with_extender.bindings] == ["a", "b"]


async def test_an_attempt_that_waits_for_an_extender_does_not_keep_the_loop_from_ending() -> None:
    bench_with_extender = bench(Pool())
    bench_with_extender.put(node("n1"), wants_gpu("a"), wants_gpu("b"))
    async with bench_with_extender.running():
        await anyio.sleep(0.5)
        begun_s = anyio.current_time()
    assert anyio.current_time() == begun_s
    assert bench_with_extender.bindings == []
    assert bench_with_extender.queue.statistics().in_flight == 0
    assert len(bench_with_extender.cache.snapshot()) == 1
