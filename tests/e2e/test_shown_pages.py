"""The commands of the documentation's pages, one after the other as they stand there.

Those of docs/install.md are in test_install_page.py.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import yaml

from tests.control_plane.locate import Binaries
from tests.e2e.cluster import RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.shown import ROOT, Shell, shown_in
from tests.helm.chart import Helm
from tests.manifests import node, nodes, pod, pods

pytestmark = pytest.mark.anyio

RUN: Final = "podium run --config scheduler.yaml --record /var/lib/podium/monday"
CATALOGUE: Final = [
    {
        "name": "c-2x",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "2", "memory": "4Gi", "pods": "32"},
        "offerings": [
            {
                "price": 0.054,
                "available": True,
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
                ],
            }
        ],
    }
]
HERE: Final = {
    "README.md",
    *(f"docs/{name}.md" for name in ("monitoring", "operations", "pending", "plan", "queue", "recording")),
    "docs/shadow.md",
}
ELSEWHERE: Final = {
    "docs/answers.md": "unit/test_shown_answers.py",
    "docs/divide.md": "unit/test_shown_answers.py",
    "docs/estimator.md": "e2e/test_estimator.py",
    "docs/fleets.md": "integration/fleets/test_served.py",
    "docs/install.md": "e2e/test_install_page.py",
    "docs/live-page.md": "e2e/test_live_page.py",
    "docs/performance.md": "unit/benchmarks/test_report.py",
    "docs/plan-aws.md": "unit/test_shown_answers.py",
    "docs/plan-azure.md": "unit/test_shown_answers.py",
    "docs/plan-gcp.md": "unit/test_shown_answers.py",
    "docs/plugins.md": "integration/examples/test_plugins.py",
    "docs/policies.md": "integration/examples/test_policies.py",
    "docs/questions.md": "integration/examples/test_questions.py",
    "docs/quickstart.md": "e2e/test_quickstart_page.py",
    "docs/shards.md": "integration/cli/test_shards_command.py",
    "docs/upgrade.md": "e2e/test_upgrade_page.py",
}
"""What is shown there goes on until it is stopped, or is made by the test's own program."""
KARPENTER: Final = "/apis/karpenter.sh/v1"
POOL: Final = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.example.com", "kind": "NodeClass", "name": "default"},
                "requirements": [],
            }
        }
    },
}
PLAN_NOT_RUN: Final = {
    # It goes on until it is told to stop, and writes the ConfigMap: test_provisioner.py.
    "podium provisioner run --kubeconfig ~/.kube/config --catalogue instance-types.json",
    "kubectl get configmap podium-provisioner -n kube-system -o yaml",
}

Json = dict[str, Any]


def kubectl_of(binaries: Binaries) -> dict[str, Path]:
    return {"kubectl": binaries["kubectl"]}


def deployment(name: str, cpu: str) -> str:
    """A manifest of two replicas."""
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    metadata = {"name": name, "namespace": "default"}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    return yaml.safe_dump({**manifest, "spec": {**spec, "template": template}})


def weight_configuration(weight: int) -> str:
    """A configuration that prefers full nodes that much."""
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    plugins = [{"name": "NodeResourcesFit", "weight": weight}]
    profile = {
        "schedulerName": "podium",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
        "plugins": {"score": {"enabled": plugins}},
    }
    return yaml.safe_dump(configuration(profiles=[profile]))


async def test_recordings_are_replayed_and_compared(
    sandbox_cluster: SandboxCluster, start: StartDaemon, tmp_path: Path
) -> None:
    recordings = tmp_path / "podium"
    recordings.mkdir()
    (tmp_path / "other.yaml").write_text(weight_configuration(50))
    await sandbox_cluster.create(*nodes(4), *pods(20, cpu="100m"))
    # As RUN does it, on a port of its own.
    daemon = await start(sandbox_cluster, flags=("--record", str(recordings / "monday")))
    await sandbox_cluster.wait_bound(f"web-{index}" for index in range(20))
    assert await daemon.stop() == 0
    shutil.copytree(recordings / "monday", recordings / "tuesday")

    instead = {"/var/lib/podium": str(recordings), "podium record": "podium record --for 2s"}
    shell = Shell(tmp_path / "home", sandbox_cluster.kubeconfig, tmp_path, instead=instead)
    first, *commands = shown_in("docs/recording.md")
    assert first == RUN
    for command in commands:
        if command.startswith("podium record"):
            shutil.rmtree(recordings / "monday")
        output = await shell.run(command)
        if command.endswith("-o json"):
            assert json.loads(output.splitlines()[-1])["same"]
    for name in ("monday.json", "monday.html", "difference.html", "sweep.html"):
        assert (tmp_path / name).stat().st_size > 1000


async def test_shadow_reports_and_its_disagreements_are_evaluated(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    await sandbox_cluster.create(node("good"), node("cordoned", unschedulable=True))

    async def bind_badly() -> None:
        for index in itertools.count():
            name = f"web-{index}"
            await sandbox_cluster.create(pod(name, scheduler="default-scheduler"))
            await sandbox_cluster.bind(name, "cordoned")
            await anyio.sleep(0.5)

    lasting = {"--for 10m": "--for 3s", "--disagreements": "--for 3s --disagreements"}
    shell = Shell(tmp_path / "home", sandbox_cluster.kubeconfig, tmp_path, instead=lasting)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bind_badly)
        outputs = [await shell.run(command) for command in shown_in("docs/shadow.md")]
        tasks.cancel_scope.cancel()
    assert "podium agrees on 0 (0.00 %)" in outputs[0]
    assert "good" in outputs[2]


@pytest.mark.control_plane
async def test_a_running_podium_is_asked_about_a_pending_pod(
    own_cluster: RealCluster, control_plane_binaries: Binaries, start: StartDaemon, tmp_path: Path
) -> None:
    """On the real API server, with the kubectl that is built with it."""
    cluster, admin = own_cluster, own_cluster.admin
    await admin.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await cluster.create(*nodes(2))
    for namespace, name in (("shop", "web-1"), ("shop", "web-7d4"), ("default", "web-1")):
        waiting = pod(name, cpu="64")
        waiting["metadata"]["namespace"] = namespace
        await admin.create(f"/api/v1/namespaces/{namespace}/pods", waiting)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(configuration()))
    (tmp_path / "token").write_text(str(admin.token))
    daemon = await start(cluster)
    await cluster.wait_condition("web-1")

    instead = {
        "https://localhost:10259": f"https://localhost:{daemon.port}",
        "$TOKEN": str(admin.token),
        "seconds=30": "seconds=1",
        "seconds=10": "seconds=1",
    }
    shell = Shell(tmp_path / "home", cluster.kubeconfig, tmp_path, kubectl_of(control_plane_binaries), instead)
    pages = ("pending", "queue", "operations")
    commands = [
        command for page in pages for command in shown_in(f"docs/{page}.md") if not command.startswith("podium run ")
    ]
    outputs = {command: await shell.run(command) for command in commands}
    part_by_command = {
        "kubectl get pod web-1": "podium",
        "podium doctor": "rights:",
        "podium why web-1 -n shop --url": "Attempt 1",
        "podium why web-1 -n shop --kubeconfig": "2 Insufficient cpu",
        "queue?output=table": "web-1",
        "/debug/decisions": "unschedulable",
        "/debug/pods/shop/web-7d4": "Insufficient cpu",
    }
    for part, answer in part_by_command.items():
        assert [command for command, text in outputs.items() if part in command and answer not in text] == [], answer
    profiles = [path async for path in anyio.Path(tmp_path).glob("*.json*")]
    assert len(profiles) == 2, profiles


@pytest.mark.control_plane
async def test_the_chart_gets_prometheus_s_objects(
    own_cluster: RealCluster, control_plane_binaries: Binaries, helm: Helm, tmp_path: Path
) -> None:
    for kind in ("ServiceMonitor", "PrometheusRule"):
        await own_cluster.define("monitoring.coreos.com", kind)
    shell = Shell(tmp_path / "home", own_cluster.kubeconfig, ROOT, {"helm": helm.binary})
    upgrade, run = shown_in("docs/monitoring.md")
    assert run.startswith("podium run --tracing-endpoint")  # test_monitoring.py
    await shell.run(upgrade)
    for plural in ("servicemonitors", "prometheusrules"):
        path = f"/apis/monitoring.coreos.com/v1/namespaces/kube-system/{plural}"
        assert (await own_cluster.admin.get(path))["items"]


async def test_the_questions_of_the_readme_are_answered(sandbox_cluster: SandboxCluster, tmp_path: Path) -> None:
    await sandbox_cluster.create(*nodes(2))
    shutil.copy(ROOT / "examples/clusters/shop.yaml", tmp_path / "cluster.yaml")
    shutil.copy(ROOT / "examples/pods/one.yaml", tmp_path / "pod.yaml")
    shutil.copytree(ROOT / "examples/clusters", tmp_path / "examples" / "clusters")
    shell = Shell(
        tmp_path / "home", sandbox_cluster.kubeconfig, tmp_path, instead={"web-7d4": "report", "node-1": "node-a"}
    )
    questions = [
        command
        for command in shown_in("README.md")
        if re.match(r"podium (evaluate|capacity|why|what-if|outlook|make-room|plan) ", command)
    ]
    assert len(questions) == 7
    for command in questions:
        assert await shell.run(command)


@pytest.mark.control_plane
async def test_a_plan_for_a_cluster_with_karpenter_s_kinds(
    own_cluster: RealCluster, control_plane_binaries: Binaries, tmp_path: Path
) -> None:
    """On the real API server, with the kubectl that is built with it."""

    for kind in ("NodePool", "NodeClaim"):
        await own_cluster.define("karpenter.sh", kind, "Cluster")
    await own_cluster.admin.create(f"{KARPENTER}/nodepools", POOL)
    await own_cluster.create(*nodes(1), pod("web-1", cpu="1"))
    (tmp_path / "instance-types.json").write_text(json.dumps(CATALOGUE))
    (tmp_path / "deployment.yaml").write_text(deployment("api", "1500m"))
    (tmp_path / "scheduler.yaml").write_text(weight_configuration(5))
    case = {"id": "one", "kind": "solve", "now": "2026-06-01T12:00:00Z", "objects": [POOL], "instanceTypes": CATALOGUE}
    (tmp_path / "cases.jsonl.gz").write_bytes(gzip.compress(json.dumps(case).encode()))

    shell = Shell(tmp_path / "home", own_cluster.kubeconfig, tmp_path, kubectl_of(control_plane_binaries))
    commands = shown_in("docs/plan.md")
    assert set(commands) > PLAN_NOT_RUN
    outputs = {command: await shell.run(command) for command in commands if command not in PLAN_NOT_RUN}
    assert "default/api-1" in outputs["podium plan -f cluster.yaml --add deployment.yaml"]
    assert "default/web-1" in outputs["podium plan -f cluster.yaml --rules podium --config scheduler.yaml"]
    assert "No node to remove" in outputs["podium consolidate -f cluster.yaml --search greedy"]
    assert json.loads((tmp_path / "answers.jsonl").read_text())["id"] == "one"


def test_every_page_that_shows_commands_is_run() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    pages_run = {str(page.relative_to(ROOT)) for page in pages if "\n$ " in page.read_text()}
    assert pages_run == HERE | set(ELSEWHERE)
    for tests in ELSEWHERE.values():
        assert (ROOT / "tests" / tests).is_file()
