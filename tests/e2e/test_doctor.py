"""`podium doctor` as an operator runs it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import yaml

from podium.objects.times import format_micro_time
from podium.sandbox.discovery import VERSION
from tests import warm_podium
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import EVENTS, Cluster, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.shipped import configuration, shipped_token
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/podium"


async def doctor(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    """Its exit code and what it prints; it must not fail otherwise."""
    command = ["doctor", "--kubeconfig", str(kubeconfig), *arguments]
    result = await anyio.to_thread.run_sync(warm_podium.run, command)
    assert "Traceback" not in result.stderr, result.stderr
    return result.returncode, result.stdout


def write_configuration(tmp_path: Path) -> str:
    path = tmp_path / "deployed.yaml"
    path.write_text(yaml.safe_dump(configuration()))
    return str(path)


def bad(report: str) -> list[Json]:
    findings: list[Json] = json.loads(report)["findings"]
    return [finding for finding in findings if finding["verdict"] != "ok"]


async def test_the_minor_of_the_api_server_judges_unless_another_is_asked_for(
    sandbox_cluster: SandboxCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate is one that 1.36 has and 1.37 has not."""
    monkeypatch.setitem(VERSION, "minor", "36")

    async def complaints(*arguments: str) -> list[str]:
        options = ("--feature-gates", "SidecarContainers=true", "--output", "json", *arguments)
        _, text = await doctor(sandbox_cluster.kubeconfig, *options)
        return [finding["message"] for finding in bad(text) if finding["check"] == "configuration"]

    assert await complaints() == []
    assert "unrecognized feature gate" in "".join(await complaints("--decide-as", "1.37"))
    monkeypatch.setitem(VERSION, "minor", "37")
    assert "unrecognized feature gate" in "".join(await complaints())


async def test_the_sandbox_is_fine_and_broken_configurations_and_servers_are_not(
    sandbox_cluster: SandboxCluster, tmp_path: Path
) -> None:
    kubeconfig = sandbox_cluster.kubeconfig
    status, text = await doctor(kubeconfig, "--config", write_configuration(tmp_path))
    assert status == 0, text
    assert "api server: it is v1.37.2" in text
    assert "rules: podium decides as kube-scheduler 1.37" in text
    status, text = await doctor(kubeconfig, "--config", write_configuration(tmp_path), "--output", "json")
    assert (status, json.loads(text)["ok"], bad(text)) == (0, True, [])

    provisioner = ("--provisioner", "sandbox", "--rules", "podium", "--output", "json")
    status, text = await doctor(kubeconfig, *provisioner)
    assert status == 0, text
    checks = {finding["check"] for finding in json.loads(text)["findings"]}
    assert checks == {"configuration", "api server", "clock", "credentials", "apis", "rights"}

    status, text = await doctor(kubeconfig, "--shadow", "--output", "json")
    assert status == 0, text
    assert {finding["check"] for finding in json.loads(text)["findings"]} == checks

    status, text = await doctor(kubeconfig, "--shards", "podium", "--shard-member", "m1", "--output", "json")
    assert (status, bad(text)) == (0, [])
    status, text = await doctor(kubeconfig, "--shards", "podium", "--leader-elect=false", "--output", "json")
    assert (status, [finding["check"] for finding in bad(text)]) == (3, ["configuration"])
    assert "--shards needs leader election" in text

    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 0\n")
    status, text = await doctor(kubeconfig, "--config", str(wrong), "--output", "json")
    finding, cluster = bad(text)
    assert (status, finding["check"], cluster["check"]) == (3, "configuration", "cluster")
    assert "parallelism" in finding["message"]
    assert "not examined" in cluster["message"]

    status, text = await doctor(tmp_path / "nowhere", "--output", "json")
    assert (status, bad(text)[-1]["check"]) == (3, "credentials")
    sandbox_cluster.sandbox.faults.refuse_connections(30.0)
    status, text = await doctor(kubeconfig, "--config", write_configuration(tmp_path), "--output", "json")
    assert (status, [finding["check"] for finding in bad(text)]) == (3, ["api server"])


@pytest.mark.control_plane
async def test_the_shipped_role_is_enough_on_the_real_api_server_and_what_is_taken_from_it_is_named(
    real_cluster: RealCluster, control_plane_binaries: Binaries, start: StartDaemon, tmp_path: Path
) -> None:
    token = await shipped_token(real_cluster, control_plane_binaries)
    kubeconfig = real_cluster.plane.kubeconfig(token, tmp_path / "kubeconfig")
    arguments = ("--config", write_configuration(tmp_path), "--output", "json")

    status, text = await doctor(kubeconfig, *arguments)
    assert (status, bad(text)) == (0, []), text

    # A running replica holds the lease, and is not refused anything.
    daemon = await start(real_cluster, configuration(), kubeconfig=kubeconfig)

    async def leads() -> bool:
        return await daemon.metric("leader_election_master_status") == 1

    await eventually(leads)
    status, text = await doctor(kubeconfig, *arguments)
    [finding] = bad(text)
    assert (status, finding["check"], finding["verdict"]) == (0, "lease", "warning")
    assert await daemon.metric("rest_client_requests_total", code="403") == 0
    assert await daemon.metric("rest_client_requests_total", code="200") > 10

    role = await real_cluster.admin.get(ROLE)
    rules = [rule for rule in role["rules"] if rule["resources"] != ["pods/binding"]]
    await real_cluster.admin.patch(ROLE, {"rules": rules})

    async def is_named() -> bool:
        status, text = await doctor(kubeconfig, *arguments)
        errors = [finding["message"] for finding in bad(text) if finding["verdict"] == "error"]
        return (status, errors) == (3, ["not allowed to create pods/binding, which DefaultBinder needs"])

    await eventually(is_named)


@pytest.mark.control_plane
async def test_doctor_reports_an_invalid_token(real_cluster: RealCluster, tmp_path: Path) -> None:
    kubeconfig = real_cluster.plane.kubeconfig("a-token-that-is-not-valid", tmp_path / "kubeconfig")
    status, text = await doctor(kubeconfig, "--config", write_configuration(tmp_path), "--output", "json")
    errors = [finding for finding in bad(text) if finding["verdict"] == "error"]
    assert (status, errors[0]["check"]) == (3, "credentials")
    assert "a-token-that-is-not-valid" not in text


async def test_another_process_that_binds_under_the_same_name_is_found_in_its_events(
    cluster: Cluster, tmp_path: Path
) -> None:
    arguments = ("--config", write_configuration(tmp_path), "--output", "json")
    _, text = await doctor(cluster.kubeconfig, *arguments)
    assert "no other process has bound pods as podium lately" in text
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.1", "namespace": "default"},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web-1"},
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "Successfully assigned default/web-1 to n1",
        "reportingController": "podium",
        "reportingInstance": "podium-elsewhere",
        "eventTime": format_micro_time(time.time()),
    }
    await cluster.admin.create(EVENTS, event)
    _, text = await doctor(cluster.kubeconfig, *arguments)
    [finding] = bad(text)
    assert finding["message"] == "podium-elsewhere has bound pods as podium in the last 120 s"
