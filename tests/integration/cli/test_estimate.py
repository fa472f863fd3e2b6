"""`podium estimate` asks a running cluster."""

from __future__ import annotations

import json
from pathlib import Path

import anyio.to_thread
import pytest

from podium.sandbox import Sandbox
from tests.control_plane.processes import free_ports
from tests.integration.cli.conftest import Podium, Start, complaints, read_until


def test_estimate_of_a_running_cluster_names_every_node(start: Start, podium: Podium, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    read_until(start("sandbox", "--nodes", "3", "--write-kubeconfig", kubeconfig), ["Serving on"])
    arguments = ("estimate", "--requests", "cpu=1", "--explain", "--output", "json")
    result = podium(*arguments, "--feature-gates", "ResourceQuotaEstimate=true", "--kubeconfig", kubeconfig)
    assert complaints(result.stderr) == []
    answer = json.loads(result.stdout)
    assert len(answer["nodes"]) == 3
    assert answer["replicas"] == sum(node["replicas"] for node in answer["nodes"]) > 0


def test_cluster_that_cannot_be_reached_is_a_plain_message(podium: Podium, tmp_path: Path) -> None:
    result = podium("estimate", "--kubeconfig", tmp_path / "none")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "none") in result.stderr


@pytest.mark.anyio
async def test_cluster_that_does_not_let_us_in_is_named(podium: Podium, tmp_path: Path) -> None:
    async with Sandbox(token="another", kubelets=False) as sandbox:
        sandbox.token = "ours"
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        result = await anyio.to_thread.run_sync(podium, "estimate", "--kubeconfig", kubeconfig)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        f"Error: {sandbox.url}: the API server does not accept our credentials: renew the kubeconfig's"
    )
    assert line.endswith("(401 Unauthorized: Unauthorized)")


def test_unreachable_cluster_ends_in_one_line_with_advice(podium: Podium, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    server = f"http://127.0.0.1:{free_ports(1)[0]}"
    kubeconfig.write_text(
        f"{{clusters: [{{name: c, cluster: {{server: '{server}'}}}}], users: [], current-context: c, "
        "contexts: [{name: c, context: {cluster: c, user: u}}]}"
    )
    result = podium("estimate", "--kubeconfig", kubeconfig)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {server}: nothing listens at its address: check that the API server runs")
