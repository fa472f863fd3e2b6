"""The provisioner against the embedded API server: what each provider does with nodes, pods, Events and the status."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from podium.engine.configurations import Configurations
from podium.engine.files import LocatedManifest
from podium.plugins import IN_TREE
from podium.provisioner.controller.app import Options, Placing, ProvisionerApp
from podium.provisioner.controller.provider import ProviderUnusableError
from podium.provisioner.disruption.sandbox_nodes import REMOVED_SINCE
from podium.provisioner.state.manifests import read_cluster
from podium.sandbox import Sandbox
from tests.control_plane.client import Client
from tests.e2e.waiting import eventually
from tests.manifests import pod, pods

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
STATUS = "podium-provisioner"
POOL: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]},
                    {"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": ["s"]},
                ]
            }
        },
        "disruption": {"budgets": [{"nodes": "100%"}]},
    },
}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Cluster:
    """An API server, and an admin's client for it."""

    def __init__(self, sandbox: Sandbox, admin: Client, kubeconfig: Path) -> None:
        self.sandbox = sandbox
        self.admin = admin
        self.kubeconfig = kubeconfig

    async def nodes(self) -> dict[str, Json]:
        """All nodes by name."""
        return {node_object["metadata"]["name"]: node_object for node_object in await self.admin.list(NODES)}

    async def wait_nodes(self, count: int) -> dict[str, Json]:
        """Until there are as many nodes."""

        async def have_come() -> bool:
            return len(await self.nodes()) == count

        await eventually(have_come)
        return await self.nodes()

    async def wait(self, check: Callable[[], Awaitable[Any]]) -> Any:
        """Until it is true."""
        return await eventually(check)

    async def bind(self, name: str, node: str) -> None:
        """As a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.admin.create(f"{PODS}/{name}/binding", binding)

    def put(self, *items: Json) -> None:
        for item in items:
            self.sandbox.store.create(item)

    async def put_unschedulable(self, *items: Json) -> None:
        """Pods that a scheduler found no node for."""
        self.put(*items)
        for item in items:
            path = f"{PODS}/{item['metadata']['name']}/status"
            await self.admin.patch(path, {"status": {"conditions": [UNSCHEDULABLE]}})

    @asynccontextmanager
    async def run_provisioner(self, provider: Any = "sandbox", **options: Any) -> AsyncIterator[ProvisionerApp]:
        """Runs a provisioner meanwhile."""
        settings = {"node_pools": read_cluster([LocatedManifest(POOL, "pool")]).node_pools} | options
        app = ProvisionerApp(
            Options(
                kubeconfig=str(self.kubeconfig),
                provider=provider,
                batch_idle_s=0.1,
                batch_max_s=0.5,
                nominated_s_min=0.1,
                period_s=0.2,
                validated_after_s=0.2,
                **settings,
            )
        )
        async with anyio.create_task_group() as group:
            group.start_soon(app.run)
            yield app
            app.stop()


@pytest.fixture
async def cluster(anyio_backend: object, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with Sandbox(controllers=True, kubelet_delay_s=0.0) as sandbox, Client(sandbox.url) as admin:
        yield Cluster(sandbox, admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"))


def waiting(count: int, **fields: Any) -> list[Json]:
    """Pods that were found unschedulable; three of them fit on a node."""
    return pods(count, cpu="1", terminationGracePeriodSeconds=0, **fields)


async def test_the_sandbox_provider_makes_the_nodes_of_the_plan(cluster: Cluster) -> None:
    await cluster.put_unschedulable(*waiting(6))
    async with cluster.run_provisioner() as app:
        nodes = await cluster.wait_nodes(2)
        for node in nodes.values():
            labels = node["metadata"]["labels"]
            assert labels["karpenter.sh/nodepool"] == "general"
            assert labels["node.kubernetes.io/instance-type"] == "s-4x-amd64-linux"
            assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
            assert node["spec"]["providerID"] == f"podium-sandbox://{node['metadata']['name']}"
            assert node["status"]["allocatable"]["cpu"] == "3900m"

        async def is_counted() -> bool:
            return b'podium_provisioner_nodes_created_total{nodepool="general"} 2' in app.metrics.render()

        async def is_told() -> Json:
            maps = await cluster.admin.list("/api/v1/namespaces/kube-system/configmaps")
            texts = [
                config_map["data"].get("purchases") for config_map in maps if config_map["metadata"]["name"] == STATUS
            ]
            return json.loads(texts[0]) if texts and texts[0] else {}

        await eventually(is_counted)
        # Which plan it tells of depends on how the pods were gathered.
        assert (await eventually(is_told))["podsThatStay"] == 0


async def test_empty_nodes_go_and_a_budget_holds_pods_that_move(cluster: Cluster) -> None:
    labels = {"app": "held"}
    cluster.put(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "hold", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        }
    )
    await cluster.put_unschedulable(*waiting(1, labels=labels))
    async with cluster.run_provisioner():
        (name,) = await cluster.wait_nodes(1)
    await cluster.bind("web-0", name)

    async def runs() -> bool:
        return bool((await cluster.admin.get(f"{PODS}/web-0"))["status"]["phase"] == "Running")

    await eventually(runs)
    # As if the provisioner had been killed right after it had begun to remove the node.
    await cluster.admin.patch(f"{NODES}/{name}", {"metadata": {"annotations": {REMOVED_SINCE: "2026-01-01T00:00:00Z"}}})
    async with cluster.run_provisioner():
        await anyio.sleep(1.5)
        assert name in await cluster.nodes()
        assert (await cluster.admin.get(f"{PODS}/web-0"))["spec"]["nodeName"] == name
        await cluster.admin.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/hold")

        async def is_gone() -> bool:
            return name not in await cluster.nodes()

        await eventually(is_gone)
        assert await cluster.admin.list(PODS) == []


async def test_nodes_whose_pods_are_gone_are_removed(cluster: Cluster) -> None:
    await cluster.put_unschedulable(*waiting(3))
    async with cluster.run_provisioner():
        (name,) = await cluster.wait_nodes(1)
        for index in range(3):
            await cluster.bind(f"web-{index}", name)
        for index in range(3):
            await cluster.admin.delete(f"{PODS}/web-{index}")
        await cluster.wait_nodes(0)


async def test_by_default_nothing_is_bought_and_events_say_what_would_be(cluster: Cluster) -> None:
    await cluster.put_unschedulable(*waiting(1), pod("huge", cpu="1000"))
    async with cluster.run_provisioner("plan-only"):

        async def notes() -> dict[str, str]:
            events = await cluster.admin.list("/apis/events.k8s.io/v1/namespaces/default/events")
            note_by_pod = {event["regarding"]["name"]: event["note"] for event in events}
            return note_by_pod if len(note_by_pod) == 2 else {}

        note_by_pod = await eventually(notes)
        assert note_by_pod["web-0"].startswith("A node would be bought for this pod: s-4x-amd64-linux (")
        assert note_by_pod["huge"].startswith("Failed to schedule pod, ")
    assert await cluster.nodes() == {}


async def test_podiums_own_plugins_judge_what_is_bought(cluster: Cluster) -> None:
    # Karpenter would buy three nodes: it does not know that nothing keeps these pods apart here.
    apart = {"app": "apart"}
    term = {"labelSelector": {"matchLabels": apart}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    config = Configurations(IN_TREE).of(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}}],
        }
    )
    await cluster.put_unschedulable(*waiting(3, labels=apart, affinity=affinity))
    async with cluster.run_provisioner(placing=Placing(config, IN_TREE, any_scheduler=True)):
        await cluster.wait_nodes(1)
        await anyio.sleep(1.0)
        assert len(await cluster.nodes()) == 1


async def test_the_provider_karpenter_needs_its_definitions(cluster: Cluster) -> None:
    app = ProvisionerApp(Options(kubeconfig=str(cluster.kubeconfig), provider="karpenter"))
    with pytest.raises(ProviderUnusableError, match=r"no nodeclaims\.karpenter\.sh"):
        await app.run()
