"""`podium estimate --mode accurate` says how many replicas podium then binds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests import warm_podium
from tests.e2e.cluster import Cluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.manifests import HOSTNAME, node, pod

pytestmark = pytest.mark.anyio

ZONE = "topology.kubernetes.io/zone"
SELECTOR = {"matchLabels": {"app": "web"}}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": SELECTOR, "topologyKey": HOSTNAME}]
    }
}
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}


async def _estimate(cluster: Cluster, workload: Path) -> int:
    command = ["estimate", "--mode", "accurate", "--output", "json"]
    command += ["--kubeconfig", str(cluster.kubeconfig), "--workload", str(workload)]
    result = await anyio.to_thread.run_sync(warm_podium.run, command)
    assert result.returncode == 0, result.stderr
    return int(json.loads(result.stdout)["replicas"])


@pytest.mark.parametrize(
    ("spec", "count"),
    [({}, 12), ({"affinity": APART}, 6), ({"topologySpreadConstraints": [SPREAD]}, 9)],
    ids=["plain", "anti-affinity", "spread"],
)
async def test_that_many_replicas_are_bound_and_one_more_stays_pending(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path, spec: dict[str, Any], count: int
) -> None:
    sizes = {"a": ("3", "3", "3"), "b": ("1", "1", "2")}
    await sandbox_cluster.create(
        *(
            node(f"{zone}-{index}", cpu=cpu, labels={ZONE: zone})
            for zone, cpus in sizes.items()
            for index, cpu in enumerate(cpus)
        )
    )
    await sandbox_cluster.create(pod("waiting", cpu="1"))
    template = pod("web", cpu="1", **spec)
    template["metadata"]["labels"] = {"app": "web"}
    (tmp_path / "web.yaml").write_text(json.dumps(template))
    answer = await _estimate(sandbox_cluster, tmp_path / "web.yaml")

    daemon = await start(sandbox_cluster)
    await sandbox_cluster.wait_bound(["waiting"])
    names = [f"web-{index}" for index in range(answer + 1)]
    for name in names:
        await sandbox_cluster.create({**template, "metadata": {**template["metadata"], "name": name}})
    await sandbox_cluster.wait_condition(names[-1])
    assert (await sandbox_cluster.wait_bound(names[:-1])).keys() == {"waiting", *names[:-1]}
    assert answer == count
    await daemon.wait_attempts("scheduled", count + 1)
