"""`podium provisioner run` with the provider `sandbox` on a real API server: nodes come and go with the load.

It is killed in the middle of buying and in the middle of removing; what it has begun then is neither lost nor repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import yaml

from tests import lifeline
from tests.control_plane.client import Client
from tests.e2e.cluster import NODES, ApiError, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shipped import may
from tests.e2e.waiting import eventually
from tests.manifests import pods

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

POD_COUNT, POD_MILLI = 500, 500
PODS_PER_NODE = 3900 // POD_MILLI
NODE_COUNT = -(-POD_COUNT // PODS_PER_NODE)
KEPT = 5
"""How many nodes keep their pods when the load goes."""

POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["s-4x-amd64-linux"]},
                ]
            }
        },
        "disruption": {"budgets": [{"nodes": "100%"}]},
    },
}


RBAC = Path(__file__).parents[2] / "deploy" / "provisioner"
_GROUP = "/apis/rbac.authorization.k8s.io/v1"
_COLLECTIONS = {
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
    "ClusterRole": f"{_GROUP}/clusterroles",
    "ClusterRoleBinding": f"{_GROUP}/clusterrolebindings",
    "Role": f"{_GROUP}/namespaces/kube-system/roles",
    "RoleBinding": f"{_GROUP}/namespaces/kube-system/rolebindings",
}
_NAMESPACE, _NAME = "kube-system", "podium-provisioner"


async def shipped_kubeconfig(cluster: RealCluster, path: Path) -> Path:
    """A kubeconfig of the account that is shipped, which has its rights."""
    texts = [(RBAC / folder / "rbac.yaml").read_text() for folder in (".", "sandbox")]
    for document in yaml.safe_load_all("\n---\n".join(texts)):
        await cluster.admin.create(_COLLECTIONS[document["kind"]], document)
    token = await cluster.admin.service_account_token(_NAMESPACE, _NAME)
    async with Client(cluster.plane.url, token=token, tls=cluster.plane.ssl_context()) as account:
        await eventually(lambda: may(account, "", "nodes", "create"))
        await eventually(lambda: may(account, "", "configmaps", "patch", _NAMESPACE, _NAME))
    return cluster.plane.kubeconfig(token, path)


class Provisioners:
    """Processes that run one after the other."""

    def __init__(self, kubeconfig: Path, directory: Path) -> None:
        self._kubeconfig = kubeconfig
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        (directory / "pools.json").write_text(json.dumps(POOL))

    def start(self) -> None:
        """One more."""
        command = (
            *(sys.executable, "-m", "podium", "provisioner", "run", "--provider", "sandbox"),
            *("--kubeconfig", self._kubeconfig, "--node-pools", self._directory / "pools.json"),
            *("--batch-max", "3s", "--period", "1s", "--validate-after", "1s", "--leader-elect", "false"),
            *("--health-probe-bind-address", "", "--metrics-bind-address", ""),
        )
        with self._log.open("ab") as log:
            self._processes.append(
                lifeline.start(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"},
                    start_new_session=True,
                )
            )

    def kill(self) -> None:
        """SIGKILL for the last one."""
        self._processes[-1].kill()
        self._processes[-1].wait()

    async def stop(self) -> int:
        """SIGTERM for the last one; returns its exit code."""
        process = self._processes[-1]
        process.terminate()
        return await anyio.to_thread.run_sync(process.wait)

    def output(self) -> str:
        """What all of them have logged."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self._directory / "log"


@asynccontextmanager
async def nodes_recorded(cluster: RealCluster) -> AsyncIterator[Counter[str]]:
    """How often each node was created meanwhile."""
    node_counts: Counter[str] = Counter()
    version = (await cluster.admin.get(NODES))["metadata"]["resourceVersion"]

    async def watch() -> None:
        async for event in cluster.admin.watch(NODES, resourceVersion=version):
            if event["type"] == "ADDED":
                node_counts[event["object"]["metadata"]["name"]] += 1

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        yield node_counts
        group.cancel_scope.cancel()


async def nodes_of(cluster: RealCluster) -> dict[str, Any]:
    """All nodes by name. Asked again and again, lists of this size would keep the machine busy."""
    await anyio.sleep(0.2)
    return {node_object["metadata"]["name"]: node_object for node_object in await cluster.admin.list(NODES)}


async def test_nodes_come_and_go_with_the_load_though_the_provisioner_is_killed(
    real_cluster: RealCluster, start: StartDaemon, tmp_path: Path
) -> None:
    cluster = real_cluster
    provisioners = Provisioners(await shipped_kubeconfig(cluster, tmp_path / "kubeconfig"), tmp_path)
    await start(cluster)
    waiting = pods(POD_COUNT, cpu=f"{POD_MILLI}m", terminationGracePeriodSeconds=0)
    names = {item["metadata"]["name"] for item in waiting}

    async def some_are_bought() -> bool:
        return bool(await nodes_of(cluster))

    async def all_are_bound() -> dict[str, str]:
        await anyio.sleep(1.0)
        placements = await cluster.placements()
        assert len(placements) == POD_COUNT, f"{len(placements)} bound\n{provisioners.output()[-2000:]}"
        return placements

    async def only_the_kept_are_left() -> bool:
        nodes = await nodes_of(cluster)
        assert nodes.keys() == kept_names, (
            f"{len(nodes)} nodes, {len(kept_names)} are needed\n{provisioners.output()[-2000:]}"
        )
        return True

    async def some_are_gone() -> bool:
        return len(await nodes_of(cluster)) < NODE_COUNT

    try:
        async with nodes_recorded(cluster) as node_counts:
            provisioners.start()
            await cluster.create(*waiting)
            await eventually(some_are_bought)
            provisioners.kill()
            provisioners.start()
            placements = await eventually(all_are_bound)
            nodes = await nodes_of(cluster)
            assert len(nodes) == NODE_COUNT
            assert set(placements.values()) <= nodes.keys()

            kept_names = set(sorted(nodes)[:KEPT])
            leaving = [name for name, node in placements.items() if node not in kept_names]
            # While the others go, these would be moved together; and nothing is there to make moved pods again.
            for name in names.difference(leaving):
                await cluster.patch_pod(name, {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
            for name in leaving:
                with suppress(ApiError):  # it was moved
                    await cluster.delete_pod(name)
            await eventually(some_are_gone)
            provisioners.kill()
            provisioners.start()
            await eventually(only_the_kept_are_left)
            assert set(node_counts.values()) == {1}
            assert node_counts.keys() == nodes.keys()
        staying = await cluster.placements()
        assert staying.keys() == names.difference(leaving)
        assert set(staying.values()) == kept_names
        assert await provisioners.stop() == 0, provisioners.output()
        assert "Traceback" not in provisioners.output()
        assert "forbidden" not in provisioners.output().lower()
        status = await cluster.admin.get(f"/api/v1/namespaces/{_NAMESPACE}/configmaps/{_NAME}")
        assert status["data"].keys() == {"purchases", "removal"}
    finally:
        provisioners.kill()
