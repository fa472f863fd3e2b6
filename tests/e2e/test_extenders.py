"""Extenders have their say over HTTP, and everything else goes on while they think."""

from __future__ import annotations

import asyncio
import http
from typing import Any

import pytest

from tests.e2e.cluster import PODS, Cluster, Json, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.priorities import create_priorities, high, missing, running
from tests.e2e.waiting import eventually
from tests.extender_server import ExtenderServer, let_through, names, never, scores
from tests.manifests import nodes, pod

pytestmark = pytest.mark.anyio

LICENCE = "example.com/licence"


def asking(server: ExtenderServer, **fields: Any) -> Json:
    return configuration(extenders=[{"urlPrefix": server.url, **fields}])


def pod_with_licence(name: str) -> Json:
    """A pod that asks for what no node has: only an extender knows about it."""
    item = pod(name)
    item["spec"]["containers"][0]["resources"] = {"requests": {LICENCE: "1"}, "limits": {LICENCE: "1"}}
    return item


async def test_pods_go_where_the_extender_lets_them_and_likes_them(cluster: Cluster, start: StartDaemon) -> None:
    created_nodes = {item["metadata"]["name"]: item for item in await cluster.create(*nodes(4))}
    filtering = let_through("node-1", "node-2", failing={"node-0": "no licence"})
    async with ExtenderServer(filter=filtering, prioritize=scores(node_2=10)) as server:
        await start(cluster, asking(server, filterVerb="filter", prioritizeVerb="prioritize", weight=5))
        [web] = await cluster.create(pod("web", enableServiceLinks=False))
        assert await cluster.wait_bound(["web"]) == {"web": "node-2"}
    [filter_body], [prioritize_body] = server.bodies("filter"), server.bodies("prioritize")
    assert {node["metadata"]["name"]: node["spec"] for node in filter_body["Nodes"]["items"]} == {
        name: node["spec"] for name, node in created_nodes.items()
    }
    assert names(prioritize_body) == ["node-1", "node-2"]
    assert filter_body["Pod"]["spec"] == web["spec"]
    assert "managedFields" not in filter_body["Pod"]["metadata"]


async def test_a_pod_that_the_extender_turns_down_is_tried_again_with_the_next_change(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(2))
    turning_down = let_through(failing={"node-0": "no licence"}, unresolvable={"node-1": "too old"})
    async with ExtenderServer(filter=turning_down) as server:
        config = asking(
            server,
            filterVerb="filter",
            nodeCacheCapable=True,
            managedResources=[{"name": LICENCE, "ignoredByScheduler": True}],
        )
        daemon = await start(sandbox_cluster, config)
        await sandbox_cluster.create(pod_with_licence("web"), pod("plain"))
        condition = await sandbox_cluster.wait_condition("web")
        assert condition["message"].startswith("0/2 nodes are available: 1 no licence, 1 too old.")
        # The binding of plain is a change, too: for the moment of the next attempt web counts as no longer rejected.
        await daemon.wait_metric(1, "scheduler_unschedulable_pods", plugin="Extender", profile="podium")

        server.replies["filter"] = let_through("node-1")
        await sandbox_cluster.patch_node("node-0", {"metadata": {"labels": {"a": "b"}}})
        assert (await sandbox_cluster.wait_bound(["web", "plain"]))["web"] == "node-1"
    assert {body["Pod"]["metadata"]["name"] for body in server.bodies("filter")} == {"web"}


async def test_everything_else_goes_on_while_an_extender_hangs(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(2))
    async with ExtenderServer(filter=never) as server:
        config = asking(server, filterVerb="filter", httpTimeout="5s", managedResources=[{"name": LICENCE}])
        config["extenders"][0]["managedResources"][0]["ignoredByScheduler"] = True
        daemon = await start(sandbox_cluster, config)
        await sandbox_cluster.create(pod_with_licence("web"))

        async def is_asked() -> bool:
            return bool(server.asked)

        await eventually(is_asked)
        await sandbox_cluster.create(pod("later"))

        async def is_queued() -> bool:
            return await daemon.pending("active") == 1

        await eventually(is_queued)
        assert (await daemon.get("/healthz"))[0] == http.HTTPStatus.OK
        assert await sandbox_cluster.placements() == {}
        condition = await sandbox_cluster.wait_condition("web", "SchedulerError")
        assert condition["message"] == f'extender "{server.url}": failed filter: no answer within 5s'
        await sandbox_cluster.wait_bound(["later"])


@pytest.mark.parametrize("answers", [True, False])
async def test_an_extender_binds_and_its_lost_answer_changes_nothing(
    sandbox_cluster: SandboxCluster, start: StartDaemon, answers: bool
) -> None:
    async def bind(args: Any) -> Json:
        target = {"apiVersion": "v1", "kind": "Node", "name": args["Node"]}
        binding = {"metadata": {"name": args["PodName"], "uid": args["PodUID"]}, "target": target}
        await sandbox_cluster.admin.create(f"{PODS}/{args['PodName']}/binding", binding)
        return {} if answers else await asyncio.Future()

    await sandbox_cluster.create(*nodes(1))
    async with ExtenderServer(bind=bind) as server:
        daemon = await start(sandbox_cluster, asking(server, bindVerb="bind", httpTimeout="2s"))
        await sandbox_cluster.create(pod("web"))
        await sandbox_cluster.wait_events("Scheduled", 1)
        assert await sandbox_cluster.placements() == {"web": "node-0"}
        assert (await daemon.attempts("scheduled"), await daemon.attempts("error")) == (1, 0)
    assert len(server.asked) == 1


@pytest.mark.parametrize("capable", [True, False])
async def test_an_extender_chooses_the_victims(cluster: Cluster, start: StartDaemon, capable: bool) -> None:
    await create_priorities(cluster)
    await cluster.create(*nodes(3, cpu="4"))
    victims = await cluster.create(*[running(f"on-{index}", f"node-{index}") for index in range(3)])
    [uid] = [item["metadata"]["uid"] for item in victims if item["metadata"]["name"] == "on-1"]

    def only_node_1(args: Any) -> Json:
        return {"NodeNameToMetaVictims": {"node-1": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}}

    async with ExtenderServer(preempt=only_node_1) as server:
        await start(cluster, asking(server, preemptVerb="preempt", nodeCacheCapable=capable))
        await cluster.create(high("urgent"))
        assert (await cluster.wait_bound(["urgent"]))["urgent"] == "node-1"
    assert await missing(cluster, ["on-0", "on-1", "on-2"]) == {"on-1"}
    candidates = server.bodies("preempt")[0]["NodeNameToMetaVictims" if capable else "NodeNameToVictims"]
    assert sorted(candidates) == ["node-0", "node-1", "node-2"]
    [victim] = candidates["node-1"]["Pods"]
    assert (victim["UID"] if capable else victim["metadata"]["uid"]) == uid
