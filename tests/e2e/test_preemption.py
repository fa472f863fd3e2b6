"""Pods of high priority make room for themselves, no more of it than they need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio
import pytest

from tests.e2e.cluster import PODS, Cluster, Json, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.objects import condition, node, nodes, pod
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.anyio

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PRIORITIES = {"low": 5, "middle": 50, "high": 1000}


async def create_priorities(cluster: Cluster, **fields: Any) -> None:
    for name, value in PRIORITIES.items():
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        await cluster.admin.create(PRIORITY_CLASSES, body | (fields if name == "high" else {}))


def running(name: str, on: str, *, cpu: str = "4", priority: str = "low", grace_s: int = 0, **labels: str) -> Json:
    """A pod that is bound already. Without grace it is gone as soon as it is deleted, as no kubelet has to agree."""
    item = pod(name, cpu=cpu, nodeName=on, priorityClassName=priority, terminationGracePeriodSeconds=grace_s)
    item["metadata"]["labels"] = labels
    return item


def high(name: str, cpu: str = "4") -> Json:
    return pod(name, cpu=cpu, priorityClassName="high")


async def missing(cluster: Cluster, names: Iterable[str]) -> set[str]:
    return set(names) - (await cluster.pods()).keys()


async def test_the_cheapest_victims_go_and_the_pod_lands(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(4, cpu="4"))
    victims_and_others = [
        running("dear", "node-0", priority="middle"),
        *[running(f"two-{index}", "node-1", cpu="2") for index in range(2)],
        running("cheap", "node-2", cpu="3"),
        running("spared", "node-2", cpu="1"),
        running("equal", "node-3", priority="high"),
    ]
    await cluster.create(*victims_and_others)
    daemon = await start(cluster)
    [preemptor] = await cluster.create(high("urgent", cpu="3"))
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == "node-2"
    assert await missing(cluster, [item["metadata"]["name"] for item in victims_and_others]) == {"cheap"}

    await cluster.wait_events("Preempted", 1)
    [event] = await cluster.events("Preempted")
    assert event["regarding"]["name"] == "cheap"
    assert event["related"]["uid"] == preemptor["metadata"]["uid"]
    assert event["note"] == f"Preempted by pod {preemptor['metadata']['uid']} on node node-2"
    assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert await daemon.metric("scheduler_preemption_attempts_total") == 1
    assert await daemon.metric("scheduler_preemption_victims_sum") == 1


async def test_a_pod_waits_at_its_nominated_node_until_its_victim_has_ended(
    cluster: Cluster, start: StartDaemon
) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(2, cpu="4"))
    await cluster.create(*[running(f"slow-{index}", f"node-{index}", grace_s=600) for index in range(2)])
    daemon = await start(cluster)
    await cluster.create(high("urgent"))

    async def nominated() -> str:
        return str((await cluster.pod("urgent"))["status"].get("nominatedNodeName", ""))

    on = await eventually(nominated)
    victim = f"slow-{on.removeprefix('node-')}"

    async def terminating() -> Json:
        item = await cluster.pod(victim)
        return item if item["metadata"].get("deletionTimestamp") else {}

    told = condition(await eventually(terminating), "DisruptionTarget")
    assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
    assert told["message"] == "podium: preempting to accommodate a higher priority pod"

    # A change that brings the pod up again: nobody else is disturbed, and the nomination stays.
    other = f"node-{1 - int(on.removeprefix('node-'))}"
    await cluster.patch_node(other, {"metadata": {"labels": {"new": "label"}}})
    await cluster.patch_node(other, {"spec": {"taints": [{"key": "new", "effect": "NoExecute"}]}})

    async def tried_again() -> bool:
        return await daemon.attempts("unschedulable") >= 2

    await eventually(tried_again)
    assert await nominated() == on
    message = (await cluster.wait_condition("urgent"))["message"]
    assert message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert not (await cluster.pod(f"slow-{other.removeprefix('node-')}"))["metadata"].get("deletionTimestamp")

    await cluster.admin.delete(f"{PODS}/{victim}?gracePeriodSeconds=0")
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == on


async def test_two_in_a_row_do_not_take_the_same_room(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(3, cpu="4"))
    names = [f"small-{index}" for index in range(3)]
    await cluster.create(*[running(name, f"node-{index}") for index, name in enumerate(names)])
    daemon = await start(cluster)
    await cluster.create(high("first"), high("second"))
    placements = await cluster.wait_bound(["first", "second"])
    assert placements["first"] != placements["second"]
    assert len(await missing(cluster, names)) == 2
    assert await daemon.metric("scheduler_preemption_victims_sum") == 2


async def test_a_pod_of_lower_priority_loses_its_nomination_to_the_room(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(node("only", cpu="4"))
    await cluster.create(*[running(f"slow-{index}", "only", cpu="2", grace_s=600) for index in range(2)])
    await start(cluster)
    await cluster.create(pod("before", cpu="2", priorityClassName="middle"))

    async def nominated(name: str) -> str:
        return str((await cluster.pod(name))["status"].get("nominatedNodeName", ""))

    async def leaving() -> list[str]:
        return [name for name, item in (await cluster.pods()).items() if item["metadata"].get("deletionTimestamp")]

    async def one_leaves() -> bool:
        return len(await leaving()) == 1 and await nominated("before") == "only"

    async def both_leave() -> bool:
        return len(await leaving()) == 2 and await nominated("urgent") == "only" and not await nominated("before")

    await eventually(one_leaves)
    await cluster.create(high("urgent"))
    await eventually(both_leave)
    for name in await leaving():
        await cluster.admin.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
    assert await cluster.wait_bound(["urgent"]) == {"urgent": "only"}


async def test_what_a_budget_protects_goes_last(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(2, cpu="4"))
    await cluster.create(
        running("protected", "node-0", app="db"), running("unprotected", "node-1", priority="middle", app="web")
    )
    await cluster.admin.create(
        BUDGETS,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "db", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}},
        },
    )
    await start(cluster)
    await cluster.create(high("first"))
    assert (await cluster.wait_bound(["first"]))["first"] == "node-1"
    assert await missing(cluster, ["protected", "unprotected"]) == {"unprotected"}
    await cluster.create(high("second"))
    assert (await cluster.wait_bound(["second"]))["second"] == "node-0"
    assert await missing(cluster, ["protected"]) == {"protected"}


async def test_a_pod_that_must_not_preempt_waits(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster, preemptionPolicy="Never")
    await cluster.create(node("only", cpu="4"), running("small", "only"))
    await start(cluster)
    await cluster.create(high("patient"))
    message = (await cluster.wait_condition("patient"))["message"]
    assert message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )
    assert "small" in await cluster.pods()


async def test_a_victim_that_cannot_be_deleted_stays_as_it_was_until_it_can(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await create_priorities(sandbox_cluster)
    await sandbox_cluster.create(node("only", cpu="4"), running("small", "only"))
    before = await sandbox_cluster.pod("small")
    sandbox_cluster.sandbox.faults.server_error(None, code=403, verb="delete", resource="pods")
    daemon = await start(sandbox_cluster)
    await sandbox_cluster.create(high("urgent"))

    async def failed() -> bool:
        return len(daemon.log("Victim could not be preempted")) >= 2

    await eventually(failed)

    async def as_before() -> bool:
        now = await sandbox_cluster.pod("small")
        return now["status"].get("conditions", []) == before["status"].get("conditions", [])

    await eventually(as_before)
    assert not await sandbox_cluster.events("Preempted")
    assert await daemon.metric("scheduler_preemption_attempts_total") <= 4  # a second between two of them

    sandbox_cluster.sandbox.faults.clear()
    assert (await sandbox_cluster.wait_bound(["urgent"]))["urgent"] == "only"
    assert "small" not in await sandbox_cluster.pods()


async def test_a_delete_without_an_answer_is_made_again(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await create_priorities(sandbox_cluster)
    await sandbox_cluster.create(node("only", cpu="4"), running("small", "only"))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.lose_response(verb="delete", resource="pods")
    with anyio.fail_after(20):
        await sandbox_cluster.create(high("urgent"))
        await sandbox_cluster.wait_bound(["urgent"])
    assert not daemon.log("Victim could not be preempted")
