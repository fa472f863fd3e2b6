"""The estimator server follows member clusters, embedded and real."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import grpc
import pytest

from podium.estimator.server.app import EstimatorApp, Source
from tests.e2e.cluster import Cluster
from tests.e2e.objects import node, pod
from tests.integration.estimator.conftest import QUIET, serving

pytestmark = pytest.mark.anyio

NODES = 200
ONE_CPU = {"resourceRequest": {"cpu": "1"}}
FOLLOWS_S_MAX = 1.0


async def _becomes(expected: int, ask: Callable[[], Awaitable[int]], within_s: float) -> None:
    found: object = None
    with anyio.move_on_after(within_s):
        while found != expected:
            try:
                found = await ask()
            except grpc.aio.AioRpcError as error:
                found = error.details()
            await anyio.sleep(0.02)
    assert found == expected


async def test_estimates_follow_two_hundred_nodes_and_their_pods_within_a_second(cluster: Cluster) -> None:
    await cluster.create(*(node(f"node-{index}", cpu="4") for index in range(NODES)))
    async with serving(EstimatorApp(QUIET, [Source("m1", str(cluster.kubeconfig))])) as asker:

        async def replicas() -> int:
            return await asker.replicas("m1", ONE_CPU)

        await _becomes(4 * NODES, replicas, 20.0)
        await cluster.create(pod("web", cpu="3", nodeName="node-7"))
        await _becomes(4 * NODES - 3, replicas, FOLLOWS_S_MAX)
        await cluster.patch_node("node-8", {"spec": {"unschedulable": True}})
        await _becomes(4 * NODES - 7, replicas, FOLLOWS_S_MAX)
        await cluster.delete_node("node-9")
        await _becomes(4 * NODES - 11, replicas, FOLLOWS_S_MAX)
