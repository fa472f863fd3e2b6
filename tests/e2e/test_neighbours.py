"""podium beside another scheduler, and beside kubelets that have the last word."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.e2e.cluster import PODS, Cluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.priorities import create_priorities, high, missing, running
from tests.e2e.waiting import eventually
from tests.manifests import HOSTNAME, condition, nodes, pod, pods

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

OTHERS = "somebody-else"
THEIRS = "theirs"


async def bind_theirs(cluster: Cluster, name: str, *, cpu: str) -> None:
    """Another scheduler binds a pod to node-0."""
    await cluster.create(pod(name, cpu=cpu, scheduler=OTHERS))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
    }
    await cluster.admin.create(f"{PODS}/{name}/binding", binding)


async def test_pods_of_other_schedulers_are_preempted_only_where_that_is_allowed(
    cluster: Cluster, start: StartDaemon
) -> None:
    await create_priorities(cluster)
    theirs = running("theirs", "node-0")
    theirs["spec"]["schedulerName"] = OTHERS
    await cluster.create(*nodes(2, cpu="4"), theirs, running("ours", "node-1", priority="middle"))
    daemon = await start(cluster)
    await cluster.create(high("urgent"))
    assert (await cluster.wait_bound(["urgent"]))["urgent"] == "node-1"
    assert await missing(cluster, ["theirs", "ours"]) == {"ours"}
    assert await daemon.stop() == 0

    await start(cluster, flags=("--preempt-pods-of-other-schedulers",))
    await cluster.create(high("urgent-2"))
    assert (await cluster.wait_bound(["urgent-2"]))["urgent-2"] == "node-0"
    assert await missing(cluster, ["theirs"]) == {"theirs"}


async def test_a_node_that_two_schedulers_fill_and_a_pod_that_its_kubelet_turns_away_are_conflicts(
    cluster: Cluster, start: StartDaemon
) -> None:
    await cluster.create(*nodes(1, cpu="4"))
    daemon = await start(cluster)
    await cluster.create(pod("ours", cpu="3"))
    await cluster.wait_bound(["ours"])
    await bind_theirs(cluster, "theirs", cpu="3")
    await cluster.admin.patch(f"{PODS}/ours/status", {"status": {"phase": "Failed", "reason": "OutOfcpu"}})
    await daemon.wait_metric(1, "podium_conflicts_total", kind="overfull", by="others")
    await daemon.wait_metric(1, "podium_conflicts_total", kind="OutOfcpu", by="podium")


async def test_keeping_out_of_the_way_of_another_scheduler_keeps_no_pod_waiting(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(5, cpu="16"))
    daemon = await start(sandbox_cluster, flags=("--avoid-conflicts",))
    await bind_theirs(sandbox_cluster, "theirs", cpu="6")
    await sandbox_cluster.create(*[pod(f"web-{number}", cpu="1") for number in range(74)])
    nodes_by_pod = await sandbox_cluster.wait_bound(f"web-{number}" for number in range(74))
    on_node = Counter(node for name, node in nodes_by_pod.items() if name != "theirs")
    assert on_node == {"node-0": 10, **{f"node-{number}": 16 for number in range(1, 5)}}
    assert await daemon.metric("podium_conflicts_total") == 0


# ------------------------------------------------------------ namespaces that misbehave


BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding"}
FOR_EVER_S = 600


def their_pods(count: int) -> list[Json]:
    """Pods of another namespace."""
    foreign_pods = pods(count, "theirs")
    for item in foreign_pods:
        item["metadata"]["namespace"] = THEIRS
    return foreign_pods


async def bound_of_theirs(cluster: SandboxCluster) -> int:
    items = await cluster.admin.list(f"/api/v1/namespaces/{THEIRS}/pods")
    return sum("nodeName" in item["spec"] for item in items)


async def test_pods_are_bound_beside_a_hundred_of_a_namespace_whose_bindings_are_slow(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(5))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.latency(FOR_EVER_S, namespace=THEIRS, **BINDINGS)
    sandbox_cluster.put(*their_pods(100))
    await daemon.wait_metric(100, "scheduler_cache_size", type="assumed_pods")
    await sandbox_cluster.create(*pods(10))
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(10)])
    assert await bound_of_theirs(sandbox_cluster) == 0


async def test_pods_are_bound_beside_a_namespace_whose_bindings_are_refused_with_429_and_beside_refused_events(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(5))
    daemon = await start(sandbox_cluster)
    refuse = sandbox_cluster.sandbox.faults.too_many_requests
    refuse(None, retry_after_s=FOR_EVER_S, namespace=THEIRS, **BINDINGS)
    refuse(None, retry_after_s=FOR_EVER_S, verb="create", resource="events")
    sandbox_cluster.put(*their_pods(100))
    await daemon.wait_metric(100, "scheduler_cache_size", type="assumed_pods")
    await sandbox_cluster.create(*pods(10))
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(10)])
    assert await bound_of_theirs(sandbox_cluster) == 0


async def test_one_refused_binding_delays_no_others_of_its_namespace(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await sandbox_cluster.create(*nodes(5))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.too_many_requests(retry_after_s=FOR_EVER_S, **BINDINGS)
    await sandbox_cluster.create(pod("refused"))
    await daemon.wait_metric(1, "rest_client_requests_total", code="429")
    await sandbox_cluster.create(*pods(10))
    await sandbox_cluster.wait_bound([f"web-{index}" for index in range(10)])
    assert "refused" not in await sandbox_cluster.placements()


async def test_pods_of_any_size_that_others_have_bound_take_their_room(cluster: Cluster, start: StartDaemon) -> None:
    pod_with_labels = pod("labelled", cpu="3", nodeName="node-0", scheduler=OTHERS)
    pod_with_labels["metadata"]["labels"] = {f"k{number}": "v" for number in range(10_001)}
    minding = pod("minding", cpu="1", nodeName="node-1", scheduler=OTHERS)
    apart = [
        {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
        for app in (*(f"other-{number}" for number in range(1_200)), "web")
    ]
    minding["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}
    await cluster.create(*nodes(2, cpu="4"), pod_with_labels, minding)
    await start(cluster)
    names = [f"web-{number}" for number in range(4)]
    web = [pod(name, cpu="900m") for name in names]
    for item in web:
        item["metadata"]["labels"] = {"app": "web"}
    await cluster.create(*web)

    async def all_but_one_wait() -> bool:
        messages = [condition(await cluster.pod(name)).get("message", "") for name in names]
        return (
            sum(
                "1 Insufficient cpu" in message and "existing pods anti-affinity rules" in message
                for message in messages
            )
            == 3
        )

    await eventually(all_but_one_wait)
    placements = await cluster.placements()
    assert [placements[name] for name in names if placements.get(name)] == ["node-0"]
