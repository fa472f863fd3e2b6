"""CapacityScheduling and NodeResourceTopologyMatch in a running podium: recorded, replayed, and explained."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import yaml

from tests import warm_podium
from tests.e2e.cluster import DEFINITIONS, ApiError, Cluster, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
DEFINED = Path(__file__).parents[2] / "deploy/policies"
EXAMPLES = Path(__file__).parents[2] / "examples/config"
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ElasticQuota": "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas",
    "NodeResourceTopology": "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
}
QUOTAS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/elasticquotas/quota"


def config(name: str) -> Json:
    return configuration(profiles=yaml.safe_load((EXAMPLES / name).read_text())["profiles"])


def quota(namespace: str, cpu_min: str) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"min": {"cpu": cpu_min, "memory": "64Gi"}},
    }


def of(namespace: str, name: str, cpu: str) -> Json:
    item = pod(name, cpu=cpu)
    item["metadata"]["namespace"] = namespace
    return item


async def create(cluster: Cluster, *items: Json) -> None:
    for item in items:
        namespace = item["metadata"].get("namespace", "default")
        await cluster.admin.create(COLLECTIONS[item["kind"]].format(namespace), item)


async def define(cluster: Cluster, name: str, collection: str) -> None:
    """Install the kind that the plugin of that name reads, as shipped, where it is not served yet."""
    if not isinstance(cluster, RealCluster):
        return
    definition = yaml.safe_load((DEFINED / name / "definitions.yaml").read_text())
    with contextlib.suppress(ApiError):
        await cluster.admin.create(DEFINITIONS, definition)

    async def is_served() -> bool:
        try:
            for item in await cluster.admin.list(f"/apis/{collection}"):
                namespace = item["metadata"].get("namespace")
                group, _, plural = collection.rpartition("/")
                middle = f"namespaces/{namespace}/" if namespace else ""
                await cluster.admin.delete(f"/apis/{group}/{middle}{plural}/{item['metadata']['name']}")
        except ApiError:
            return False
        return True

    await eventually(is_served)


async def podium(*arguments: object) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(warm_podium.run, list(map(str, arguments)))


async def is_placed(cluster: Cluster, namespace: str, name: str) -> bool:
    item: Json = await cluster.admin.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    return bool(item["spec"].get("nodeName"))


async def test_a_quota_is_borrowed_and_taken_back(cluster: Cluster, start: StartDaemon, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("team-a", "team-b")
    ]
    await define(cluster, "capacity-scheduling", "scheduling.x-k8s.io/v1alpha1/elasticquotas")
    await create(cluster, *namespaces)
    await create(cluster, node("n1", cpu="4"), quota("team-a", "2"), quota("team-b", "2"))
    daemon = await start(cluster, config("capacity-scheduling.yaml"), flags=("--record", str(recording)))
    await create(cluster, *(of("team-a", f"x{number}", "1") for number in range(4)))
    for number in range(4):
        await eventually(lambda name=f"x{number}": is_placed(cluster, "team-a", name))
    for number in range(4):
        path = f"/api/v1/namespaces/team-a/pods/x{number}/status"
        await cluster.admin.patch(path, {"status": {"phase": "Running"}})

    async def read_usage() -> object:
        return (await cluster.admin.get(QUOTAS.format("team-a"))).get("status", {}).get("used", {}).get("cpu") == "4"

    await eventually(read_usage)
    await create(cluster, of("team-b", "owner", "2"))

    async def leaving() -> list[str]:
        pods = (await cluster.admin.get("/api/v1/namespaces/team-a/pods"))["items"]
        names = [item["metadata"]["name"] for item in pods if item["metadata"].get("deletionTimestamp")]
        return names if len(names) == 2 else []

    for name in await eventually(leaving):
        await cluster.admin.delete(f"/api/v1/namespaces/team-a/pods/{name}")
    await eventually(lambda: is_placed(cluster, "team-b", "owner"))
    await create(cluster, of("team-a", "more", "1"))

    async def read_refusal() -> str:
        item: Json = await cluster.admin.get("/api/v1/namespaces/team-a/pods/more")
        return next((entry["message"] for entry in item["status"].get("conditions", ())), "")

    message = await eventually(read_refusal)
    assert "total ElasticQuota used is more than min" in message
    assert await daemon.stop() == 0
    result = await podium("replay", recording, "--expect", "-o", "json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout.splitlines()[-1])["same"] is True


async def test_a_numa_pod_that_fits_nowhere_says_why(cluster: Cluster, start: StartDaemon, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
                for name, amount in (("cpu", "4"), ("memory", "8Gi"))
            ],
        }
        for number in range(2)
    ]
    topology = {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": "n1"},
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": zones,
    }
    large = pod("large", cpu="6")
    amounts = {"cpu": "6", "memory": "1Gi"}
    large["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    await define(cluster, "node-resource-topology-match", "topology.node.k8s.io/v1alpha2/noderesourcetopologies")
    await create(cluster, node("n1", cpu="8"), topology)
    numa = config("node-resource-topology-match.yaml")
    daemon = await start(cluster, numa, flags=("--record", str(recording)))
    await create(cluster, large)
    condition = await cluster.wait_condition("large")
    assert "1 cannot align container" in condition["message"]
    file = tmp_path / "numa.yaml"
    file.write_text(yaml.safe_dump(numa))
    why = await podium("why", "large", "--kubeconfig", cluster.kubeconfig, "--config", file)
    assert "requests cpu 6 of one NUMA node, of which one has 4 at most" in why.stdout, why.stdout + why.stderr

    for zone in zones:
        zone["resources"][0]["available"] = "6"  # type: ignore[index]
    await cluster.admin.patch("/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/n1", {"zones": zones})
    assert await cluster.wait_bound(["large"]) == {"large": "n1"}
    assert await daemon.stop() == 0
    result = await podium("replay", recording, "--expect", "-o", "json")
    assert json.loads(result.stdout.splitlines()[-1])["same"] is True, result.stderr
