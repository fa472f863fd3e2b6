"""The estimator server follows member clusters, embedded and real."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import grpc
import pytest

from podium.estimator.accurate import Rules
from podium.estimator.server.app import EstimatorApp, Source
from podium.estimator.server.members import OnUnsynced
from tests.e2e.cluster import Cluster, RealCluster
from tests.integration.estimator.server.conftest import QUIET, Asker, replace, serving
from tests.manifests import HOSTNAME, Json, node, pod
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

NODES = 200
ONE_CPU = {"resourceRequest": {"cpu": "1"}}
# Far below the time after which anything is read again of itself; usually it is a few milliseconds.
FOLLOWS_S_MAX = 10.0
QUESTIONS = 300
# A loop that waits for the member that is gone would do so for seconds; a machine that is busy may take its time, too.
LATENCY_S_MAX = 4.0
CPU_RATIO_MAX = 2.0


async def _becomes(target: int | str, ask: Callable[[], Awaitable[int]], within_s: float) -> None:
    answer: object = None
    with anyio.move_on_after(within_s):
        while answer != target:
            try:
                answer = await ask()
            except grpc.aio.AioRpcError as error:
                answer = error.details()
            await anyio.sleep(0.02)
    assert answer == target


async def test_estimates_follow_two_hundred_nodes_and_their_pods(cluster: Cluster) -> None:
    await cluster.create(*(node(f"node-{index}", cpu="4") for index in range(NODES)))
    async with serving(EstimatorApp(QUIET, [Source("m1", str(cluster.kubeconfig))])) as asker:

        async def replicas() -> int:
            return await asker.replicas("m1", ONE_CPU)

        await _becomes(4 * NODES, replicas, PATIENCE_S)
        await cluster.create(pod("web", cpu="3", nodeName="node-7"))
        await _becomes(4 * NODES - 3, replicas, FOLLOWS_S_MAX)
        await cluster.patch_node("node-8", {"spec": {"unschedulable": True}})
        await _becomes(4 * NODES - 7, replicas, FOLLOWS_S_MAX)
        await cluster.delete_node("node-9")
        await _becomes(4 * NODES - 11, replicas, FOLLOWS_S_MAX)


async def test_accurate_estimates_know_the_workload_and_what_waits(cluster: Cluster) -> None:
    await cluster.create(*(node(f"node-{index}", cpu="4") for index in range(5)))
    options = replace(QUIET, rules=Rules())
    async with serving(EstimatorApp(options, [Source("m1", str(cluster.kubeconfig))])) as asker:

        async def replicas() -> int:
            return await asker.replicas("m1", ONE_CPU, of="kind=Deployment, name=default/web")

        await _becomes(20, replicas, PATIENCE_S)
        await cluster.admin.create("/apis/apps/v1/namespaces/default/deployments", _deployment())
        await _becomes(5, replicas, FOLLOWS_S_MAX)
        await cluster.create(pod("waits", cpu="4"))
        await _becomes(4, replicas, FOLLOWS_S_MAX)


def _deployment() -> Json:
    container = {"name": "main", "image": "app", "resources": {"limits": {"cpu": "1"}}}
    labels = {"app": "web"}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "affinity": affinity}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.mark.control_plane
async def test_member_that_is_stopped_leaves_the_others_answers_and_latency_untouched(
    real_cluster: RealCluster, own_cluster: RealCluster
) -> None:
    await real_cluster.create(*(node(f"node-{index}", cpu="4") for index in range(NODES)))
    await own_cluster.create(node("node-0", cpu="7"))
    sources = [Source("stays", str(real_cluster.kubeconfig)), Source("goes", str(own_cluster.kubeconfig))]
    app = EstimatorApp(replace(QUIET, on_unsynced=OnUnsynced.ERROR), sources)
    async with serving(app) as asker:
        await _becomes(4 * NODES, lambda: asker.replicas("stays", ONE_CPU), PATIENCE_S)
        await _becomes(7, lambda: asker.replicas("goes", ONE_CPU), PATIENCE_S)
        before_cpu_s, _ = await _ask_often(asker)
        assert own_cluster.plane.apiserver is not None
        own_cluster.plane.apiserver.kill()
        await _becomes("cluster goes cannot be reached", lambda: asker.replicas("goes", ONE_CPU), PATIENCE_S)
        after_cpu_s, slowest_s = await _ask_often(asker)
    assert after_cpu_s < CPU_RATIO_MAX * before_cpu_s
    assert slowest_s < LATENCY_S_MAX


async def _ask_often(asker: Asker) -> tuple[float, float]:
    """CPU time of this process for many questions to the member that stays, and how long the slowest took."""
    slowest_s, started_cpu_s = 0.0, time.process_time()
    for _ in range(QUESTIONS):
        started_s = time.perf_counter()
        assert await asker.replicas("stays", ONE_CPU) == 4 * NODES
        slowest_s = max(slowest_s, time.perf_counter() - started_s)
    return time.process_time() - started_cpu_s, slowest_s
