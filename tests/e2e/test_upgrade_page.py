"""The commands of docs/upgrade.md with which helm upgrades podium and goes back, against a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.shown import ROOT, Shell, shown_in
from tests.helm.chart import Helm

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]


async def test_helm_upgrades_podium_and_goes_back(
    own_cluster: RealCluster, control_plane_binaries: Binaries, helm: Helm, tmp_path: Path
) -> None:
    programs = {"kubectl": control_plane_binaries["kubectl"], "helm": helm.binary}
    shell = Shell(tmp_path / "home", own_cluster.kubeconfig, ROOT, programs)
    upgrade, rollback = (command for command in shown_in("docs/upgrade.md") if command.startswith("helm"))
    await shell.run("helm install podium deploy/helm/podium --namespace kube-system --set replicas=3")
    deployment = "kubectl -n kube-system get deployment podium -o jsonpath={.spec.replicas}"
    assert "has been upgraded" in await shell.run(upgrade)
    # What was set is kept.
    assert await shell.run(deployment) == "3"
    assert "Rollback was a success" in await shell.run(rollback)
    assert await shell.run(deployment) == "3"
