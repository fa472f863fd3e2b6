from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from podium.objects.api_errors import InternalError
from tests.builders import node, pod
from tests.unit.daemon.world import World, changed, settled
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """One node with room for one of the pods, conflicts being counted."""
    made = World()
    made.put(node("n1", cpu="4"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.conflicts.run)
        await settled()
        yield made
        tasks.cancel_scope.cancel()


def bind(world: World, name: str, *, scheduler: str = "podium", cpu: str = "3") -> None:
    waiting = pod(name, cpu=cpu, scheduler=scheduler)
    world.put(waiting)
    world.put(waiting.on_node("n1"))


def counted(world: World) -> dict[tuple[str, ...], float]:
    return world.metrics.values("podium_conflicts_total")


async def test_a_node_that_we_overfill_after_another_has_bound_there_counts_as_ours(world: World) -> None:
    bind(world, "theirs", scheduler="somebody-else")
    bind(world, "ours")
    assert counted(world) == {("overfull", "podium"): 1}


async def test_a_node_that_another_overfills_after_us_counts_as_theirs(world: World) -> None:
    bind(world, "ours")
    bind(world, "theirs", scheduler="somebody-else")
    assert counted(world) == {("overfull", "others"): 1}


async def test_our_pod_that_is_not_confirmed_yet_is_no_burden_to_those_bound_before_it(world: World) -> None:
    ours = pod("ours", cpu="3")
    world.put(ours)
    world.cache.assume_pod(ours, "n1")
    bind(world, "theirs", scheduler="somebody-else")
    assert counted(world) == {}
    world.put(ours.on_node("n1"))
    assert counted(world) == {("overfull", "podium"): 1}


async def test_pods_that_fit_together_are_no_conflict(world: World) -> None:
    bind(world, "ours", cpu="2")
    bind(world, "theirs", scheduler="somebody-else", cpu="2")
    assert counted(world) == {}


async def test_a_pod_that_asks_for_nothing_scarce_is_no_conflict_but_one_too_many_pods_are(world: World) -> None:
    world.put(node("n1", cpu="4", pods=2))
    bind(world, "ours", cpu="5")
    bind(world, "theirs", scheduler="somebody-else", cpu="0")
    assert counted(world) == {}
    bind(world, "theirs-2", scheduler="somebody-else", cpu="0")
    assert counted(world) == {("overfull", "others"): 1}


async def test_bindings_that_are_far_apart_are_not_concurrent(world: World) -> None:
    bind(world, "theirs", scheduler="somebody-else")
    await anyio.sleep(10.0)
    bind(world, "ours")
    assert counted(world) == {}


async def test_a_node_that_is_not_there_is_never_overfull(world: World) -> None:
    for name, scheduler in (("ours", "podium"), ("theirs", "somebody-else")):
        waiting = pod(name, cpu="300", scheduler=scheduler)
        world.put(waiting, waiting.on_node("elsewhere"))
    assert counted(world) == {}


async def test_nothing_is_counted_by_a_process_that_does_not_schedule() -> None:
    world = World()
    world.put(node("n1", cpu="4"))
    bind(world, "theirs", scheduler="somebody-else")
    bind(world, "ours")
    assert counted(world) == {}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu"}, {("OutOfcpu", "podium"): 1}),
        ({"phase": "Failed", "reason": "NodeAffinity"}, {("NodeAffinity", "podium"): 1}),
        ({"phase": "Failed", "reason": "Evicted"}, {}),
        ({"phase": "Succeeded"}, {}),
    ],
)
async def test_a_pod_of_ours_that_ends_before_it_starts_is_asked_for_the_reason(
    world: World, status: dict[str, str], expected: dict[Any, float]
) -> None:
    metadata = {"name": "ours", "namespace": "default", "uid": "uid-ours"}
    answer = {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}
    world.wire.answer = lambda _: answer
    bind(world, "ours")
    world.delete(pod("ours"))
    await settled()
    assert [str(each) for each in world.wire.requests] == ["GET /api/v1/namespaces/default/pods/ours"]
    assert counted(world) == expected


async def test_another_pod_of_the_same_name_says_nothing_about_ours(world: World) -> None:
    world.wire.answer = lambda _: {
        "metadata": {"uid": "another"},
        "spec": {},
        "status": {"phase": "Failed", "reason": "OutOfcpu"},
    }
    bind(world, "ours")
    world.delete(pod("ours"))
    await settled()
    assert counted(world) == {}


async def test_pods_of_others_that_ran_or_were_deleted_are_not_asked_for(world: World) -> None:
    bind(world, "theirs", scheduler="somebody-else")
    running, deleted = pod("ran", node="n1", status={"phase": "Running"}), pod("deleted", node="n1")
    world.put(running, deleted)
    world.put(changed(deleted, terminating=True))
    for each in ("theirs", "ran", "deleted"):
        world.delete(pod(each))
    await settled()
    assert world.wire.requests == []


@pytest.mark.parametrize("answer", [InternalError("no", code=500), "nonsense"])
async def test_a_reason_that_cannot_be_read_is_let_be(world: World, answer: Any) -> None:
    def reply(_: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    world.wire.answer = reply
    bind(world, "ours")
    world.delete(pod("ours"))
    await settled()
    bind(world, "ours-2")
    assert counted(world) == {}


# ---------------------------------------------------------------- avoiding them


def send(world: World, name: str, *, cpu: str = "3") -> bool:
    """A pod is assumed, and its binding would be sent; whether it is too late for that."""
    ours = pod(name, cpu=cpu)
    world.put(ours)
    world.cache.assume_pod(ours, "n1")
    return world.conflicts.is_too_late(ours)


async def test_a_binding_is_too_late_where_another_has_filled_the_node_since(world: World) -> None:
    ours = pod("ours", cpu="3")
    world.put(ours)
    world.cache.assume_pod(ours, "n1")
    assert not world.conflicts.is_too_late(ours)
    bind(world, "theirs", scheduler="somebody-else")
    assert world.conflicts.is_too_late(ours)
    assert counted(world) == {("averted", "others"): 1}


async def test_bindings_that_nobody_has_seen_yet_count_while_others_bind_pods(world: World) -> None:
    assert not send(world, "alone", cpu="1")
    assert world.conflicts.unconfirmed() is None
    bind(world, "theirs", scheduler="somebody-else", cpu="1")
    assert not send(world, "ours", cpu="1")
    assert world.conflicts.unconfirmed() == 2
    world.put(pod("ours", cpu="1").on_node("n1"))
    assert world.conflicts.unconfirmed() == 1
    world.conflicts.not_bound(pod("alone"))
    assert world.conflicts.unconfirmed() == 0


async def test_a_binding_that_is_never_seen_counts_for_ten_seconds(world: World) -> None:
    send(world, "lost", cpu="1")
    await anyio.sleep(9.0)
    bind(world, "theirs", scheduler="somebody-else", cpu="1")
    assert world.conflicts.unconfirmed() == 1
    await anyio.sleep(1.5)
    assert world.conflicts.unconfirmed() == 0
    await anyio.sleep(8.5)
    assert world.conflicts.unconfirmed() is None
