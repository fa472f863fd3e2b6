"""podium beside the real kube-scheduler: it takes names of its own, and kube-scheduler's only with a flag."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.shown import ROOT, Shell, shown_in
from tests.e2e.waiting import eventually
from tests.helm.chart import Helm
from tests.manifests import node, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SHARED = {"leaderElect": True, "resourceName": "shared"}


@contextmanager
def running(shell: Shell, command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of a document that goes on until it is stopped, without the port that others may have."""
    line = f"exec {command} --secure-port=0"
    process = subprocess.Popen(
        ["sh", "-c", line], cwd=ROOT, env=shell.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def holder(cluster: RealCluster, name: str) -> str:
    """Who holds that lease in kube-system."""

    async def read_holder() -> str:
        leases = {lease["metadata"]["name"]: lease for lease in await cluster.admin.list(LEASES)}
        return str(leases[name]["spec"].get("holderIdentity") or "") if name in leases else ""

    return await eventually(read_holder)


async def test_the_commands_of_the_readme_work_in_its_order(
    own_cluster: RealCluster, control_plane_binaries: Binaries, helm: Helm, tmp_path: Path
) -> None:
    """`podium run` first: it has made the lease when the chart is installed."""
    cluster = own_cluster
    programs = {"kubectl": control_plane_binaries["kubectl"], "helm": helm.binary}
    shell = Shell(tmp_path / "home", cluster.kubeconfig, ROOT, programs)
    commands = shown_in("README.md")
    run = next(command for command in commands if command.startswith("podium run"))
    [install] = [command for command in commands if command.startswith("helm install")]
    [examples] = [command for command in commands if command == "kubectl apply -f examples/pods/"]
    assert f"{install}    # or: kubectl apply -f deploy/" in (ROOT / "README.md").read_text()
    assert commands.index(run) < commands.index(install) < commands.index(examples)

    await cluster.create(node("there", cpu="8"), pod("left-alone", scheduler="default-scheduler"))
    with running(shell, run):
        first = await holder(cluster, "podium")
        assert "schedulerName: podium" in await shell.run(install)
        await shell.run(examples)
        await cluster.wait_bound(["podium-one"])
        assert "left-alone" not in await cluster.placements()
        assert await holder(cluster, "podium") == first
    assert {lease["metadata"]["name"] for lease in await cluster.admin.list(LEASES)} >= {"podium"}
    assert "kube-scheduler" not in {lease["metadata"]["name"] for lease in await cluster.admin.list(LEASES)}
    # Installed again, and from the plain manifests: the lease that is left stands in nobody's way.
    await shell.run("helm uninstall podium --namespace kube-system")
    await shell.run(install)
    await shell.run("helm uninstall podium --namespace kube-system")
    await shell.run("kubectl apply -f deploy/")


async def test_kube_schedulers_lease_is_shared_only_with_the_flag(own_cluster: RealCluster, start: StartDaemon) -> None:
    cluster = own_cluster
    # A lease of any name, which only its writer shows to be kube-scheduler's.
    config: dict[str, Any] = {"leaderElection": SHARED, "profiles": [{"schedulerName": "default-scheduler"}]}
    scheduler = await anyio.to_thread.run_sync(lambda: cluster.plane.start_scheduler(config))
    try:
        theirs = await holder(cluster, "shared")
        refused_daemon = await start(cluster, configuration(leaderElection=SHARED), ready=False)
        assert await refused_daemon.wait_ended() == 1
        [entry] = [entry for entry in refused_daemon.log() if entry["level"] == "critical"]
        assert f"kube-system/shared is held by {theirs}: leaderElection.resourceName: " in entry["error"]
        assert "--as-default-scheduler" in entry["error"]

        shared_daemon = await start(cluster, configuration(**config), flags=("--as-default-scheduler",))
        await shared_daemon.wait_log("New leader elected")
        await cluster.create(node("there"), pod("first", scheduler="default-scheduler"))
        await cluster.wait_bound(["first"])
        assert shared_daemon.bound_pods() == []
    finally:
        await anyio.to_thread.run_sync(scheduler.process.kill)
    # kube-scheduler has ended: podium takes its place once the lease has run out.
    await cluster.create(pod("second", scheduler="default-scheduler"))
    await cluster.wait_bound(["second"], within_s=120.0)
    assert "default/second" in await shared_daemon.wait_told_bound(["second"])
