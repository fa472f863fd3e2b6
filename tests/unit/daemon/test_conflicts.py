from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from podium.objects.api_errors import InternalError
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, settle, with_changes
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


@pytest.fixture
async def bench() -> AsyncIterator[LoopBench]:
    """One node with room for one of the pods, conflicts being counted."""
    loop_bench = LoopBench()
    loop_bench.put(node("n1", cpu="4"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(loop_bench.conflicts.run)
        await settle()
        yield loop_bench
        tasks.cancel_scope.cancel()


def bind(bench: LoopBench, name: str, *, scheduler: str = "podium", cpu: str = "3") -> None:
    waiting = pod(name, cpu=cpu, scheduler=scheduler)
    bench.put(waiting)
    bench.put(waiting.on_node("n1"))


def conflict_counts(bench: LoopBench) -> dict[tuple[str, ...], float]:
    return bench.metrics.values("podium_conflicts_total")


async def test_a_node_that_we_overfill_after_another_has_bound_there_counts_as_ours(bench: LoopBench) -> None:
    bind(bench, "theirs", scheduler="somebody-else")
    bind(bench, "ours")
    assert conflict_counts(bench) == {("overfull", "podium"): 1}


async def test_a_node_that_another_overfills_after_us_counts_as_theirs(bench: LoopBench) -> None:
    bind(bench, "ours")
    bind(bench, "theirs", scheduler="somebody-else")
    assert conflict_counts(bench) == {("overfull", "others"): 1}


async def test_our_pod_that_is_not_confirmed_yet_is_no_burden_to_those_bound_before_it(bench: LoopBench) -> None:
    ours = pod("ours", cpu="3")
    bench.put(ours)
    bench.cache.assume_pod(ours, "n1")
    bind(bench, "theirs", scheduler="somebody-else")
    assert conflict_counts(bench) == {}
    bench.put(ours.on_node("n1"))
    assert conflict_counts(bench) == {("overfull", "podium"): 1}


async def test_pods_that_fit_together_are_no_conflict(bench: LoopBench) -> None:
    bind(bench, "ours", cpu="2")
    bind(bench, "theirs", scheduler="somebody-else", cpu="2")
    assert conflict_counts(bench) == {}


async def test_a_pod_that_asks_for_nothing_scarce_is_no_conflict_but_one_too_many_pods_are(bench: LoopBench) -> None:
    bench.put(node("n1", cpu="4", pods=2))
    bind(bench, "ours", cpu="5")
    bind(bench, "theirs", scheduler="somebody-else", cpu="0")
    assert conflict_counts(bench) == {}
    bind(bench, "theirs-2", scheduler="somebody-else", cpu="0")
    assert conflict_counts(bench) == {("overfull", "others"): 1}


async def test_devices_that_a_class_provides_and_the_node_does_not_offer_are_no_conflict(bench: LoopBench) -> None:
    for name, scheduler in (("theirs", "somebody-else"), ("ours", "podium")):
        requests = {"resources": {"requests": {"example.com/gpu": "1"}}}
        waiting = pod(name, scheduler=scheduler, spec={"containers": [{"name": "main", **requests}]})
        bench.put(waiting)
        bench.put(waiting.on_node("n1"))
        assert not bench.conflicts.is_too_late(waiting)
    assert conflict_counts(bench) == {}


async def test_bindings_that_are_far_apart_are_not_concurrent(bench: LoopBench) -> None:
    bind(bench, "theirs", scheduler="somebody-else")
    await anyio.sleep(10.0)
    bind(bench, "ours")
    assert conflict_counts(bench) == {}


async def test_a_node_that_is_not_there_is_never_overfull(bench: LoopBench) -> None:
    for name, scheduler in (("ours", "podium"), ("theirs", "somebody-else")):
        waiting = pod(name, cpu="300", scheduler=scheduler)
        bench.put(waiting, waiting.on_node("elsewhere"))
    assert conflict_counts(bench) == {}


async def test_nothing_is_counted_by_a_process_that_does_not_schedule() -> None:
    bench = LoopBench()
    bench.put(node("n1", cpu="4"))
    bind(bench, "theirs", scheduler="somebody-else")
    bind(bench, "ours")
    assert conflict_counts(bench) == {}


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu"}, {("OutOfcpu", "podium"): 1}),
        ({"phase": "Failed", "reason": "NodeAffinity"}, {("NodeAffinity", "podium"): 1}),
        ({"phase": "Failed", "reason": "Evicted"}, {}),
        ({"phase": "Succeeded"}, {}),
    ],
)
async def test_a_pod_of_ours_that_ends_before_it_starts_is_asked_for_the_reason(
    bench: LoopBench, status: dict[str, str], counts: dict[Any, float]
) -> None:
    metadata = {"name": "ours", "namespace": "default", "uid": "uid-ours"}
    answer = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}
    bench.wire.answer = lambda _: answer
    bind(bench, "ours")
    bench.delete(pod("ours"))
    await settle()
    assert [str(request) for request in bench.wire.requests] == ["GET /api/v1/namespaces/default/pods/ours"]
    assert conflict_counts(bench) == counts


async def test_another_pod_of_the_same_name_says_nothing_about_ours(bench: LoopBench) -> None:
    bench.wire.answer = lambda _: {
        "metadata": {"uid": "another"},
        "spec": {},
        "status": {"phase": "Failed", "reason": "OutOfcpu"},
    }
    bind(bench, "ours")
    bench.delete(pod("ours"))
    await settle()
    assert conflict_counts(bench) == {}


async def test_pods_of_others_that_ran_or_were_deleted_are_not_asked_for(bench: LoopBench) -> None:
    bind(bench, "theirs", scheduler="somebody-else")
    running, deleted_pod = pod("ran", node="n1", status={"phase": "Running"}), pod("deleted", node="n1")
    bench.put(running, deleted_pod)
    bench.put(with_changes(deleted_pod, terminating=True))
    for name in ("theirs", "ran", "deleted"):
        bench.delete(pod(name))
    await settle()
    assert bench.wire.requests == []


@pytest.mark.parametrize("answer", [InternalError("no", code=500), "nonsense"])
async def test_a_reason_that_cannot_be_read_is_let_be(bench: LoopBench, answer: Any) -> None:
    def reply(_: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench.wire.answer = reply
    bind(bench, "ours")
    bench.delete(pod("ours"))
    await settle()
    bind(bench, "ours-2")
    assert conflict_counts(bench) == {}


# ---------------------------------------------------------------- avoiding them


def send(bench: LoopBench, name: str, *, cpu: str = "3") -> bool:
    """A pod is assumed, and its binding would be sent; whether it is too late for that."""
    ours = pod(name, cpu=cpu)
    bench.put(ours)
    bench.cache.assume_pod(ours, "n1")
    return bench.conflicts.is_too_late(ours)


async def test_a_binding_is_too_late_where_another_has_filled_the_node_since(bench: LoopBench) -> None:
    ours = pod("ours", cpu="3")
    bench.put(ours)
    bench.cache.assume_pod(ours, "n1")
    assert not bench.conflicts.is_too_late(ours)
    bind(bench, "theirs", scheduler="somebody-else")
    assert bench.conflicts.is_too_late(ours)
    assert conflict_counts(bench) == {("averted", "others"): 1}


async def test_bindings_that_nobody_has_seen_yet_count_while_others_bind_pods(bench: LoopBench) -> None:
    assert not send(bench, "alone", cpu="1")
    assert bench.conflicts.unconfirmed_count() is None
    bind(bench, "theirs", scheduler="somebody-else", cpu="1")
    assert not send(bench, "ours", cpu="1")
    assert bench.conflicts.unconfirmed_count() == 2
    bench.put(pod("ours", cpu="1").on_node("n1"))
    assert bench.conflicts.unconfirmed_count() == 1
    bench.conflicts.not_bound(pod("alone"))
    assert bench.conflicts.unconfirmed_count() == 0


async def test_a_binding_that_is_never_seen_counts_for_ten_seconds(bench: LoopBench) -> None:
    send(bench, "lost", cpu="1")
    await anyio.sleep(9.0)
    bind(bench, "theirs", scheduler="somebody-else", cpu="1")
    assert bench.conflicts.unconfirmed_count() == 1
    await anyio.sleep(1.5)
    assert bench.conflicts.unconfirmed_count() == 0
    await anyio.sleep(8.5)
    assert bench.conflicts.unconfirmed_count() is None
