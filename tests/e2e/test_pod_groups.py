"""Gangs on the sandbox: each lands as a whole or waits as a whole, also across a restart."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
FLAGS = ("--feature-gates=GenericWorkload=true",)


def pod_group(name: str, min_count: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def gang(name: str, count: int, cpu: str = "2") -> dict[str, Json]:
    members = [pod(f"{name}-{at}", cpu=cpu, schedulingGroup={"podGroupName": name}) for at in range(count)]
    return {member["metadata"]["name"]: member for member in members}


async def group_condition(cluster: SandboxCluster, name: str) -> tuple[str, str]:
    """Status and message of the group's condition, once there is one."""

    async def read_condition() -> Json:
        group = await cluster.admin.get(f"{GROUPS}/{name}")
        conditions = group.get("status", {}).get("conditions", [])
        return conditions[0] if conditions else {}

    condition = await eventually(read_condition)
    assert condition["type"] == "PodGroupInitiallyScheduled"
    return condition["status"], condition["message"]


async def test_a_gang_lands_as_a_whole_once_its_last_pod_is_there(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(3, cpu="4"))
    await cluster.admin.create(GROUPS, pod_group("gang", 4))
    members = gang("gang", 4)
    *first, last = members.values()
    daemon = await start(cluster, flags=FLAGS)
    await cluster.create(*first, pod("alone"))
    await cluster.wait_bound(["alone"])
    assert (await cluster.placements()).keys() == {"alone"}
    await cluster.create(last)
    await cluster.wait_bound(members)
    assert await group_condition(cluster, "gang") == ("True", "")
    await daemon.wait_metric(1, "scheduler_podgroup_schedule_attempts_total", result="scheduled", profile="podium")


async def test_a_server_without_pod_groups_costs_one_warning_and_other_pods_are_scheduled(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    cluster.sandbox.faults.server_error(None, code=404, resource="podgroups")
    await cluster.create(*nodes(1, cpu="4"))
    daemon = await start(cluster, flags=FLAGS)
    await cluster.create(*gang("gang", 1).values(), pod("alone"))
    assert await cluster.wait_bound(["alone"]) == {"alone": "node-0"}
    warnings = daemon.log("the API server does not serve this resource")
    assert [entry["resource"] for entry in warnings] == ["podgroups"]


async def test_a_gang_that_does_not_fit_waits_as_a_whole_until_it_does(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    first_node, *other_nodes = nodes(4, cpu="4")
    await cluster.create(first_node)
    await cluster.admin.create(GROUPS, pod_group("gang", 4))
    daemon = await start(cluster, flags=FLAGS)
    members = gang("gang", 4, cpu="3")
    await cluster.create(*members.values())
    status, message = await group_condition(cluster, "gang")
    assert status == "False"
    assert message.startswith("minCount (4) cannot be satisfied: 1 scheduled, 2 remaining, pod group preemption: ")
    assert await cluster.placements() == {}
    assert await daemon.attempts("error") == 0
    await cluster.create(*other_nodes)
    await cluster.wait_bound(members)
    assert await group_condition(cluster, "gang") == ("True", "")


async def test_a_gang_stays_whole_if_podium_is_killed_while_it_binds(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    cluster = sandbox_cluster
    await cluster.create(*nodes(10, cpu="4"))
    await cluster.admin.create(GROUPS, pod_group("gang", 12))
    await cluster.admin.create(GROUPS, pod_group("waiting", 50))
    members, waiting = gang("gang", 12, cpu="1"), gang("waiting", 50)
    # Bindings go out slowly, so that some are sent when podium is killed, and some are not.
    daemon = await start(cluster, configuration(qps=4, burst=4), flags=FLAGS)
    await cluster.create(*waiting.values(), *members.values())

    async def some_are_bound() -> bool:
        return 0 < len(await cluster.placements()) < len(members)

    await eventually(some_are_bound)
    daemon.kill()
    await start(cluster, flags=FLAGS)
    placements = await cluster.wait_bound(members)
    assert placements.keys() >= members.keys()
    await anyio.sleep(1.5)
    assert (await cluster.placements()).keys() == members.keys()
