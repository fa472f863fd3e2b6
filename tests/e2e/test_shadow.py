"""`podium shadow` beside the real kube-scheduler, with the rights that are shipped for it; `tests.shadow` runs more."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio.to_thread
import pytest

from benchmarks.etcd import Etcd
from benchmarks.nodes import node
from benchmarks.workloads import WORKLOADS
from podium.insight.evaluate import Evaluator
from tests.control_plane.client import Client
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.shipped import DEPLOY, may
from tests.e2e.waiting import eventually
from tests.shadow.beside import compare, unexplained_disagreements

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

NODES, PODS = 20, 100


async def kubeconfig_of_shadow(cluster: RealCluster, binaries: Binaries, path: Path) -> Path:
    """Applies the manifests, and returns a kubeconfig of their account that has its rights."""
    command = [binaries["kubectl"], "--kubeconfig", cluster.kubeconfig, "apply", "-f", DEPLOY / "shadow"]
    await anyio.to_thread.run_sync(lambda: subprocess.run(command, check=True, capture_output=True))
    token = await cluster.admin.service_account_token("kube-system", "podium-shadow")
    async with Client(cluster.plane.url, token=token, tls=cluster.plane.ssl_context()) as account:
        await eventually(lambda: may(account, "resource.k8s.io", "resourceslices", "watch"))
        assert not await may(account, "", "pods/binding", "create")
    return cluster.plane.kubeconfig(token, path)


async def test_kube_scheduler_takes_nodes_that_podium_scores_highest(
    own_cluster: RealCluster, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    kubeconfig = await kubeconfig_of_shadow(own_cluster, control_plane_binaries, tmp_path / "kubeconfig")
    file = tmp_path / "disagreements.jsonl"

    def run() -> dict[str, object]:
        with Etcd(own_cluster.plane.etcd_address) as etcd:
            etcd.put(map(node, range(NODES)))
        options = ("--disagreements", str(file))
        return compare(own_cluster.plane, WORKLOADS["mixed"], NODES, PODS, kubeconfig=kubeconfig, options=options)

    report = await anyio.to_thread.run_sync(run)
    assert report["compared"] == PODS
    assert unexplained_disagreements(report) == []
    for line in file.read_bytes().splitlines():
        scenario = json.loads(line)
        answer = Evaluator().answer_line(line, "")
        assert answer == {"id": scenario["id"], **scenario["expect"]}
        if scenario["id"].endswith(" as decided"):
            scores = {name: score["total"] for name, score in answer["scores"].items()}
            assert scores[scenario["shadow"]["chosen"]] == max(scores.values())
