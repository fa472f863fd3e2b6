"""Pods of high priority make room for themselves, no more of it than they need."""

from __future__ import annotations

import pytest

from podium.config import RELEASES
from tests.e2e.cluster import PODS, Cluster, Json
from tests.e2e.conftest import StartDaemon
from tests.e2e.priorities import create_priorities, high, missing, running
from tests.e2e.waiting import eventually
from tests.manifests import condition, node, nodes, pod

pytestmark = pytest.mark.anyio

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


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
    await daemon.wait_metric(1, "scheduler_preemption_attempts_total")
    await daemon.wait_metric(1, "scheduler_preemption_victims_sum")


async def test_among_equals_the_one_that_has_run_least_goes(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(3, cpu="4"), *[running(f"on-{index}", f"node-{index}") for index in range(3)])
    for index, hour in enumerate((10, 12, 11)):
        status = {"phase": "Running", "startTime": f"2026-01-02T{hour}:00:00Z"}
        await cluster.admin.patch(f"{PODS}/on-{index}/status", {"status": status})
    await start(cluster)
    await cluster.create(high("urgent"))
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == "node-1"
    assert await missing(cluster, ["on-0", "on-1", "on-2"]) == {"on-1"}


async def test_a_pod_waits_at_its_nominated_node_until_its_victim_has_ended(
    cluster: Cluster, start: StartDaemon
) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(2, cpu="4"))
    await cluster.create(*[running(f"slow-{index}", f"node-{index}", grace_s=600) for index in range(2)])
    daemon = await start(cluster)
    await cluster.create(high("urgent"))

    async def nominated_node() -> str:
        return str((await cluster.pod("urgent"))["status"].get("nominatedNodeName", ""))

    on = await eventually(nominated_node)
    assert await cluster.placements() == {"slow-0": "node-0", "slow-1": "node-1"}
    victim = f"slow-{on.removeprefix('node-')}"

    async def terminating() -> Json:
        item = await cluster.pod(victim)
        return item if item["metadata"].get("deletionTimestamp") else {}

    target_condition = condition(await eventually(terminating), "DisruptionTarget")
    assert (target_condition["status"], target_condition["reason"]) == ("True", "PreemptionByScheduler")
    assert target_condition["message"] == "podium: preempting to accommodate a higher priority pod"

    # A change that brings the pod up again: nobody else is disturbed, and the nomination stays.
    other_node = f"node-{1 - int(on.removeprefix('node-'))}"
    await cluster.create(running("brief", other_node, cpu="1m"))
    await cluster.delete_pod("brief")

    async def tried_again() -> bool:
        return await daemon.attempts("unschedulable") >= 2

    await eventually(tried_again)
    assert await nominated_node() == on

    async def told_why() -> bool:
        message = (await cluster.wait_condition("urgent"))["message"]
        assert message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
        return True

    await eventually(told_why)
    assert not (await cluster.pod(f"slow-{other_node.removeprefix('node-')}"))["metadata"].get("deletionTimestamp")

    await cluster.admin.delete(f"{PODS}/{victim}?gracePeriodSeconds=0")
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == on
    # An API server before 1.35 leaves it there.
    version = await cluster.admin.get("/version")
    assert await nominated_node() == ("" if int(version["minor"]) >= 35 else on)


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
    await daemon.wait_metric(2, "scheduler_preemption_victims_sum")


async def test_a_pod_of_lower_priority_loses_its_nomination_to_the_room(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(node("only", cpu="4"))
    await cluster.create(*[running(f"slow-{index}", "only", cpu="2", grace_s=600) for index in range(2)])
    await start(cluster)
    await cluster.create(pod("before", cpu="2", priorityClassName="middle"))

    async def nominated_node(name: str) -> str:
        return str((await cluster.pod(name))["status"].get("nominatedNodeName", ""))

    async def leaving() -> list[str]:
        return [name for name, item in (await cluster.pods()).items() if item["metadata"].get("deletionTimestamp")]

    async def one_leaves() -> bool:
        return len(await leaving()) == 1 and await nominated_node("before") == "only"

    async def both_leave() -> bool:
        return (
            len(await leaving()) == 2
            and await nominated_node("urgent") == "only"
            and not await nominated_node("before")
        )

    await eventually(one_leaves)
    await cluster.create(high("urgent"))
    await eventually(both_leave)
    for name in await leaving():
        await cluster.admin.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
    assert await cluster.wait_bound(["urgent"]) == {"urgent": "only"}


async def create_budget(cluster: Cluster, app: str, disruptions: int) -> None:
    """A disruption budget as its controller would leave it."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }
    stored_budget = await cluster.admin.create(BUDGETS, budget)
    counts = {"currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "disruptionsAllowed": disruptions}
    stored_budget["status"] = counts | {"observedGeneration": 1}
    await cluster.admin.replace(f"{BUDGETS}/{app}/status", stored_budget)


async def test_what_a_budget_protects_goes_last(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(2, cpu="4"))
    await cluster.create(
        running("protected", "node-0", app="db"), running("unprotected", "node-1", priority="middle", app="web")
    )
    await create_budget(cluster, "db", 0)
    await start(cluster)
    await cluster.create(high("first"))
    assert (await cluster.wait_bound(["first"]))["first"] == "node-1"
    assert await missing(cluster, ["protected", "unprotected"]) == {"unprotected"}
    await cluster.create(high("second"))
    assert (await cluster.wait_bound(["second"]))["second"] == "node-0"
    assert await missing(cluster, ["protected"]) == {"protected"}


async def test_what_a_budget_still_lets_go_is_not_protected(cluster: Cluster, start: StartDaemon) -> None:
    """One of two may go: both nodes would have a victim of the budget, one of them two."""
    await create_priorities(cluster)
    await cluster.create(*nodes(2, cpu="4"))
    await cluster.create(
        *[running(f"half-{index}", "node-0", cpu="2", app="db") for index in range(2)],
        running("whole", "node-1", priority="middle", app="db"),
    )
    await create_budget(cluster, "db", 1)
    await start(cluster)
    await cluster.create(high("urgent"))
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == "node-1"
    assert await missing(cluster, ["half-0", "half-1", "whole"]) == {"whole"}


async def test_a_pod_that_must_not_preempt_waits(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster, preemptionPolicy="Never")
    await cluster.create(node("only", cpu="4"), running("small", "only"))
    daemon = await start(cluster)
    await cluster.create(high("patient"))
    message = (await cluster.wait_condition("patient"))["message"]
    rules = RELEASES[daemon.log("Deciding as kube-scheduler does")[0]["minor"]].preemption
    devices_text = "no new claims to deallocate, " if rules.tell_no_deallocation else ""
    assert message == (
        f"0/1 nodes are available: 1 Insufficient cpu. {devices_text}"
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert "small" in await cluster.pods()
