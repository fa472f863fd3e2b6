"""The commands of docs/install.md, one after the other as they stand there, against a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shown import ROOT, Shell, shown_in
from tests.e2e.waiting import eventually
from tests.helm.chart import Helm
from tests.manifests import node, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

NOT_RUN = {
    # It installs podium; tests/integration/cli/test_demo.py runs the demo.
    "make demo",
    # There is no container runtime; tests/integration/cli/test_wheel.py takes the Dockerfile's steps.
    "docker build -f deploy/Dockerfile -t podium:0.6.0 .",
    # There is no release here; tests/integration/release/test_release.py builds one, and verifies it.
    "podium release verify dist --key podium.pem",
    # No kubelet runs the Deployment's pods; test_limits_and_endpoints.py asks the endpoints.
    "kubectl port-forward -n kube-system deployment/podium 10259 &",
    "curl -k https://127.0.0.1:10259/readyz?verbose",
}


async def test_the_commands_of_the_page_lead_to_bound_pods(
    own_cluster: RealCluster, control_plane_binaries: Binaries, helm: Helm, start: StartDaemon, tmp_path: Path
) -> None:
    cluster, admin = own_cluster, own_cluster.admin
    programs = {"kubectl": control_plane_binaries["kubectl"], "helm": helm.binary}
    shell = Shell(tmp_path / "home", cluster.kubeconfig, ROOT, programs)
    pods = "/api/v1/namespaces/shop/pods"
    await admin.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await cluster.create(node("there", cpu="8"))
    asked_about = pod("web-7d4", cpu="64")
    asked_about["metadata"]["namespace"] = "shop"
    await admin.create(pods, asked_about)
    await start(cluster)

    commands, outputs = shown_in("docs/install.md"), dict[str, str]()
    assert set(commands) > NOT_RUN
    for command in commands:
        if command.startswith("kubectl get events"):
            await cluster.wait_bound(["podium-one"])
        if command not in NOT_RUN:
            outputs[command] = await shell.run(command)
    assert "1 Insufficient cpu" in outputs[".venv/bin/podium why web-7d4 -n shop --kubeconfig ~/.kube/config"]
    assert "schedulerName: podium" in outputs["helm install podium deploy/helm/podium --namespace kube-system"]
    assert "pod/podium-one" in outputs["kubectl get events --field-selector reason=Scheduled -A"]
    # The README shows the same.
    readme = (ROOT / "README.md").read_text()
    assert all(
        command in readme for command in outputs if command.startswith(("helm install", "kubectl apply -f deploy/"))
    )

    async def is_given_to_podium() -> bool:
        dry_run_item = pod("tried", scheduler="default-scheduler")
        dry_run_item["metadata"]["namespace"] = "shop"
        dry_run_pod = await admin.request("POST", pods, dry_run_item, params={"dryRun": "All"})
        return bool(dry_run_pod["spec"]["schedulerName"] == "podium")

    await eventually(is_given_to_podium)
