"""Moves in the sandbox, in virtual time: what is done, and what ends it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podium.binder import ApiClient
from podium.client.credentials import load
from podium.client.dispatcher import Dispatcher
from podium.client.requests import Method
from podium.client.session import ApiSession
from podium.insight import Cluster
from podium.insight.room.carrying_out import CarryingOutError, Expectation, MoveCarrier
from podium.insight.room.make_room import make_room
from podium.insight.room.plan import RoomPlan
from podium.lib.system_clock import SystemClock
from podium.objects.core import Pod
from podium.sandbox.embedded import Sandbox
from tests.manifests import Json, node
from tests.provisioned.sandboxed import at_rest, daemon_beside, nodes_of_pods, run, sandbox_of
from tests.unit.insight.room.test_make_room import node_in_zone, running, spread_over_zones, waiting
from tests.virtual_time import LoopClock
from tests.workload_manifests import budget, workload

KINDS = ("nodes", "replicasets", "poddisruptionbudgets", "pods", "namespaces")
Work = Callable[[Sandbox, MoveCarrier, RoomPlan, Expectation], Awaitable[None]]


def replica_set(name: str, cpu: str) -> Json:
    item = workload("ReplicaSet", name, 1, cpu=cpu)
    item["metadata"]["uid"] = f"ReplicaSet/default/{name}"
    return item


def of_replica_set(name: str, cpu: str, node_name: str) -> Json:
    item = running(f"{name}-1", cpu, node_name, of=name)
    item["metadata"]["uid"] = f"{name}-1"
    return item


def big_pod() -> Json:
    item = waiting(preemptionPolicy="Never")
    item["metadata"]["uid"] = "big"
    return item


ONE_MOVE = [
    *(node("n1", "4"), node("n2", "2")),
    *(replica_set("web", "1"), of_replica_set("web", "1", "n1"), big_pod()),
]
TWO_MOVES = [
    *(node("n1", "4"), node("n2", "3"), node("n3", "1")),
    *(replica_set("web", "3"), replica_set("api", "1")),
    *(of_replica_set("web", "3", "n1"), of_replica_set("api", "1", "n2"), big_pod()),
]


def carry_out(
    objects: list[Json], work: Work, *, has_scheduler: bool = False, session_type: type[ApiSession] = ApiSession
) -> list[str]:
    """Plan moves in a sandbox of these objects, and do something with the plan; return what was reported."""
    lines: list[str] = []

    async def main() -> None:
        async with sandbox_of(objects, controllers=True) as sandbox:
            if has_scheduler:
                async with daemon_beside(sandbox, 1):
                    await at_rest(sandbox)
                    await plan_and_work(sandbox)
                    await at_rest(sandbox)
            else:
                await plan_and_work(sandbox)

    async def plan_and_work(sandbox: Sandbox) -> None:
        cluster = Cluster.load([item for kind in KINDS for item in sandbox.store.list(kind)])
        plan = make_room(cluster, "default/big").plan
        assert plan is not None
        credentials = await load(None, SystemClock(), master=sandbox.url, environ={})
        async with session_type(credentials) as session:
            clock = LoopClock()
            client = ApiClient(Dispatcher(session, clock), clock)
            carrier = MoveCarrier(session, client, clock, lines.append, step_s_max=20.0)
            await work(sandbox, carrier, plan, Expectation.of(cluster, plan))

    run(main)
    return lines


def cordoned_names(sandbox: Sandbox) -> list[str]:
    return [item["metadata"]["name"] for item in sandbox.store.list("nodes") if item["spec"].get("unschedulable")]


def test_a_dry_run_changes_nothing() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.dry_run(plan, expectation)
        assert cordoned_names(sandbox) == []
        assert nodes_of_pods(sandbox) == {"web-1": "n1"}

    assert carry_out(ONE_MOVE, work) == ["dry run: default/web-1 could be evicted from n1"]


def test_steps_are_carried_out_and_every_cordon_is_taken_back() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == []
        assert nodes_of_pods(sandbox)["big"] == "n1"

    assert carry_out(TWO_MOVES, work, has_scheduler=True) == [
        "1 of 2: default/api-1 has moved from n2 to n3",
        "2 of 2: default/web-1 has moved from n1 to n2",
        "default/big is on n1",
    ]


def test_a_pod_that_comes_by_itself_after_the_last_move_is_what_was_wanted() -> None:
    # Zone a has room, but one pod more than zone b; as soon as that has left, the scheduler places the pod.
    web = replica_set("web", "1")
    objects = [node_in_zone("a1", "a"), node_in_zone("a2", "a"), node_in_zone("b1", "b", "1"), web]
    big = waiting(preemptionPolicy="Never", **spread_over_zones("big"))
    big["metadata"]["uid"] = "big"

    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.carry_out(plan, expectation)
        assert nodes_of_pods(sandbox)["big"] in ("a1", "a2")
        assert cordoned_names(sandbox) == []

    lines = carry_out([*objects, of_replica_set("web", "1", "a1"), big], work, has_scheduler=True)
    assert lines[0] == "1 of 1: default/web-1 has moved from a1 to b1"


def test_only_the_documented_rights_are_used() -> None:
    rights: set[str] = set()

    class NotedSession(ApiSession):
        async def request(self, method: Method, path: str, *args: Any, **kwargs: Any) -> bytes:
            _, _, resource = path.partition("?")[0].removeprefix("/api/v1/").rpartition("namespaces/default/")
            kind, _, subresource = resource.partition("/")
            right = f"{kind}/{subresource.rpartition('/')[2]}" if "/" in subresource else kind
            rights.add(f"{'read' if method == 'GET' else method} {right}")
            return await super().request(method, path, *args, **kwargs)

    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.dry_run(plan, expectation)
        await carrier.carry_out(plan, expectation)

    carry_out(TWO_MOVES, work, has_scheduler=True, session_type=NotedSession)
    assert rights == {"POST pods/eviction", "PATCH nodes", "PATCH pods/status", "read pods", "read nodes"}


def stranger_comes(sandbox: Sandbox) -> None:
    sandbox.store.put_raw(running("stranger-1", "1", "n2"))


def node_shrinks(sandbox: Sandbox) -> None:
    sandbox.store.patch("nodes", "n2", {"status": {"allocatable": {"cpu": "1"}}}, subresource="status")


def node_is_cordoned(sandbox: Sandbox) -> None:
    sandbox.store.patch("nodes", "n2", {"spec": {"unschedulable": True}})


def node_is_tainted(sandbox: Sandbox) -> None:
    taint = {"key": "maintenance", "effect": "NoSchedule"}
    sandbox.store.patch("nodes", "n2", {"spec": {"taints": [taint]}})


def node_is_relabelled(sandbox: Sandbox) -> None:
    sandbox.store.patch("nodes", "n2", {"metadata": {"labels": {"zone": "b"}}})


def node_is_deleted(sandbox: Sandbox) -> None:
    sandbox.store.delete("nodes", "n2")


def node_is_another_one(sandbox: Sandbox) -> None:
    sandbox.store.delete("nodes", "n2")
    sandbox.store.put_raw(node("n2", "2"))


def moved_pod_is_deleted(sandbox: Sandbox) -> None:
    sandbox.store.delete("pods", "web-1", "default")


def moved_pod_is_gone(sandbox: Sandbox) -> None:
    sandbox.store.delete("pods", "web-1", "default", grace_period_s=0)


def pod_grows(name: str) -> Callable[[Sandbox], None]:
    def grow(sandbox: Sandbox) -> None:
        pod = sandbox.store.get("pods", name)
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "5"}}
        sandbox.store.put_raw(pod)

    return grow


def pod_in_question_is_deleted(sandbox: Sandbox) -> None:
    sandbox.store.delete("pods", "big", "default")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (stranger_comes, "the cluster has changed: default/stranger-1 has come to node n2"),
        (node_shrinks, "the cluster has changed: node n2 is not as it was"),
        (node_is_cordoned, "the cluster has changed: node n2 was cordoned by others"),
        (node_is_tainted, "the cluster has changed: node n2 is not as it was"),
        (node_is_relabelled, "the cluster has changed: node n2 is not as it was"),
        (node_is_deleted, "the cluster has changed: node n2 does not exist any more"),
        (node_is_another_one, "the cluster has changed: node n2 does not exist any more"),
        (moved_pod_is_deleted, "the cluster has changed: default/web-1 is being deleted by others"),
        (moved_pod_is_gone, "the cluster has changed: default/web-1 has left node n1"),
        (pod_grows("web-1"), "the cluster has changed: default/web-1 requests other amounts than before"),
        (pod_grows("big"), "the cluster has changed: default/big requests other amounts than before"),
        (pod_in_question_is_deleted, "the cluster has changed: default/big does not exist any more"),
    ],
)
def test_a_cluster_that_has_changed_ends_it_before_a_step(change: Callable[[Sandbox], None], message: str) -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        change(sandbox)
        cordoned_before, nodes_before = cordoned_names(sandbox), nodes_of_pods(sandbox)
        with pytest.raises(CarryingOutError, match=f"stopped after 0 of 1 moves: {message}"):
            await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == cordoned_before
        assert nodes_of_pods(sandbox) == nodes_before

    carry_out(ONE_MOVE, work)


def test_a_budget_that_has_come_since_ends_the_dry_run() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        sandbox.store.put_raw(budget({"app": "web"}, minAvailable=1))
        with pytest.raises(CarryingOutError, match="a PodDisruptionBudget does not allow to evict default/web-1 now"):
            await carrier.dry_run(plan, expectation)

    carry_out(ONE_MOVE, work)


def test_a_budget_that_is_tightened_between_two_steps_ends_it_and_nothing_more_is_evicted() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.dry_run(plan, expectation)
        sandbox.store.put_raw(budget({"app": "web"}, minAvailable=1))
        message = "stopped after 1 of 2 moves: a PodDisruptionBudget does not allow to evict default/web-1 now"
        with pytest.raises(CarryingOutError, match=message):
            await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == []
        assert nodes_of_pods(sandbox)["web-1"] == "n1"

    carry_out(TWO_MOVES, work, has_scheduler=True)


def test_room_that_others_take_between_two_steps_ends_it() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        async def take_room(pod: Pod) -> bool:
            is_evicted = await evict(pod)
            sandbox.store.put_raw(running("stranger-1", "1", "n2"))
            return is_evicted

        client = carrier._client
        evict = client.evict_pod
        client.evict_pod = take_room  # type: ignore[method-assign]
        message = "stopped after 1 of 2 moves: the cluster has changed: default/stranger-1 has come to node n2"
        with pytest.raises(CarryingOutError, match=message):
            await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == []
        assert nodes_of_pods(sandbox)["web-1"] == "n1"

    carry_out(TWO_MOVES, work, has_scheduler=True)


def test_a_replacement_with_other_requests_ends_it() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        web = sandbox.store.get("replicasets", "web")
        web["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
        sandbox.store.put_raw(web)
        with pytest.raises(CarryingOutError, match=r"in the place of default/web-1 requests other amounts"):
            await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == []

    carry_out(ONE_MOVE, work)


def test_a_pod_that_was_terminating_may_be_gone() -> None:
    ending = of_replica_set("ending", "1", "n2")
    ending["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 1}

    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        await carrier.carry_out(plan, expectation)
        assert nodes_of_pods(sandbox)["big"] == "n1"

    objects = [item for item in ONE_MOVE if item["metadata"]["name"] != "big"]
    lines = carry_out([*objects, node("n3", "1"), ending, big_pod()], work, has_scheduler=True)
    assert lines[-1] == "default/big is on n1"


def test_a_replacement_that_does_not_run_in_time_ends_it_and_cordons_are_taken_back() -> None:
    async def work(sandbox: Sandbox, carrier: MoveCarrier, plan: RoomPlan, expectation: Expectation) -> None:
        with pytest.raises(CarryingOutError, match=r"stopped after 0 of 1 moves: .* is not ready after 20 s"):
            await carrier.carry_out(plan, expectation)
        assert cordoned_names(sandbox) == []

    carry_out(ONE_MOVE, work)
