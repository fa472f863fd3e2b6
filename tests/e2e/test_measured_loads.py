"""NodeLoad and GpuPacking on both API servers: Prometheus says which node is hot, GPUs become annotations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, nodes, pod
from tests.metrics_sources import metrics_stub, vector

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
CPU, MEMORY = "instance:node_cpu:ratio", "instance:node_memory_utilisation:ratio"
GPU, SHARE, INDEX = "nvidia.com/gpu", "podium.io/gpu-milli", "podium.io/gpu-index"


def config(plugin: str, **args: Any) -> Json:
    profile = {
        "schedulerName": "podium",
        "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    return configuration(profiles=[profile])


async def test_a_hot_node_is_avoided_while_prometheus_says_so(cluster: Cluster, start: StartDaemon) -> None:
    await cluster.create(*nodes(2))
    queries = {CPU: vector({"node-0:9100": 0.97, "node-1:9100": 0.2}), MEMORY: vector({"node-0:9100": 0.1})}
    async with metrics_stub(queries=queries) as stub:
        source = {"type": "Prometheus", "address": stub.url, "token": "secret"}
        await start(cluster, config("NodeLoad", metricProvider=source))

        async def is_read() -> bool:
            return len(stub.requests) >= 2

        await eventually(is_read)
        pods = [pod(f"cool-{at}") for at in range(5)]
        await cluster.create(*pods)
        await cluster.wait_bound([item["metadata"]["name"] for item in pods])
        assert set((await cluster.placements()).values()) == {"node-1"}
        assert {request[3] for request in stub.requests} == {"Bearer secret"}


async def test_the_gpus_of_a_pod_are_written_before_it_is_bound(cluster: Cluster, start: StartDaemon) -> None:
    manifest = node("node-0")
    for field in ("capacity", "allocatable"):
        manifest["status"][field] |= {GPU: "2", SHARE: "2000"}
    await cluster.create(manifest)
    await start(cluster, config("GpuPacking"))
    pods = [pod(f"half-{at}") for at in range(3)]
    for item in pods:
        resources = item["spec"]["containers"][0]["resources"]
        resources["requests"] |= {SHARE: "500"}
        resources["limits"] = {SHARE: "500"}
    await cluster.create(*pods)
    await cluster.wait_bound([item["metadata"]["name"] for item in pods])
    bound = [await cluster.admin.get(f"/api/v1/namespaces/default/pods/{item['metadata']['name']}") for item in pods]
    assert sorted(item["metadata"]["annotations"][INDEX] for item in bound) == ["0", "0", "1"]
