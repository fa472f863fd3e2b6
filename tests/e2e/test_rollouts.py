"""Workloads of the sandbox, rolled out by its controllers and scheduled by podium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.sandbox import Sandbox
from tests.control_plane.client import Client
from tests.e2e.cluster import SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def with_controllers(anyio_backend: object, tmp_path: Path) -> AsyncIterator[SandboxCluster]:
    """Two nodes whose kubelets and controllers are quick."""
    async with Sandbox(controllers=True, kubelet_delay_s=0.01) as sandbox, Client(sandbox.url) as admin:
        for name in ("n1", "n2"):
            sandbox.store.create(node(name))
        yield SandboxCluster(admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), sandbox)


def node(name: str) -> Json:
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def workload(kind: str, image: str, pod: Json, **spec: Any) -> Json:
    resources = {"requests": {"cpu": "100m"}}
    containers = [{"name": "main", "image": image, "resources": resources}]
    template: Json = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"schedulerName": "podium", "containers": containers},
    }
    template["spec"] |= pod
    spec |= {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}


async def images_on_nodes(admin: Client) -> list[tuple[str, str]]:
    pods = [pod for pod in await admin.list(PODS) if pod["status"]["phase"] == "Running"]
    return sorted((pod["spec"]["nodeName"], pod["spec"]["containers"][0]["image"]) for pod in pods)


@pytest.mark.parametrize("keys", [{"matchLabelKeys": ["pod-template-hash"]}, {"matchLabelKeys": ["rev"]}])
async def test_a_deployment_whose_pods_keep_apart_by_revision_rolls_out(
    with_controllers: SandboxCluster, start: StartDaemon, keys: Json
) -> None:
    """As many pods as nodes, and none may go before a new one is ready: new pods must share nodes with old ones."""
    admin = with_controllers.admin
    await start(with_controllers)
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}} | keys
    pod = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    for image in ("web:1", "web:2"):
        deployment = workload("Deployment", image, pod, replicas=2, strategy=strategy)
        deployment["spec"]["template"]["metadata"]["labels"] |= {"rev": image[-1]}
        if image == "web:1":
            await admin.create(DEPLOYMENTS, deployment)
        else:
            await admin.patch(f"{DEPLOYMENTS}/web", deployment)

        async def rolled_out(image: str = image) -> bool:
            return await images_on_nodes(admin) == [("n1", image), ("n2", image)]

        await eventually(rolled_out)


async def test_daemons_are_scheduled_to_their_nodes_also_to_a_later_one(
    with_controllers: SandboxCluster, start: StartDaemon
) -> None:
    admin = with_controllers.admin
    await start(with_controllers)
    await admin.create(DAEMON_SETS, workload("DaemonSet", "agent:1", {}))

    async def run_on(*names: str) -> bool:
        return await images_on_nodes(admin) == [(name, "agent:1") for name in names]

    await eventually(lambda: run_on("n1", "n2"))
    cordoned = node("n3") | {"spec": {"unschedulable": True}}
    await admin.create("/api/v1/nodes", cordoned)
    await eventually(lambda: run_on("n1", "n2", "n3"))
