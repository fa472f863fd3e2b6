"""`podium plan` asks a running cluster, and writes nothing to it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.cli.conftest import Podium, Start, complaints, read_until

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 9
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, resources: {requests: {cpu: "3"}}}]
"""


def test_nodes_are_planned_for_a_running_cluster_without_karpenter(
    start: Start, podium: Podium, tmp_path: Path
) -> None:
    kubeconfig, manifest = tmp_path / "kubeconfig", tmp_path / "web.yaml"
    manifest.write_text(WEB)
    read_until(start("sandbox", "--nodes", "3", "--write-kubeconfig", kubeconfig), ["Serving on"])
    arguments = ("plan", "--kubeconfig", kubeconfig, "--add", manifest, "--output", "json")
    refusal = podium(*arguments)
    assert refusal.returncode == 1
    assert "--adopt-nodes" in refusal.stderr
    result = podium(*arguments, "--adopt-nodes")
    assert complaints(result.stderr) == []
    answer = json.loads(result.stdout)
    placed_count = sum(len(pods) for pods in answer["existing"].values())
    assert placed_count > 0
    assert placed_count + sum(len(new_node["pods"]) for new_node in answer["new_nodes"]) == 9
    assert json.loads(podium(*arguments, "--adopt-nodes").stdout) == answer


def test_missing_kubeconfig_gives_a_plain_error_message(podium: Podium, tmp_path: Path) -> None:
    result = podium("plan", "--kubeconfig", tmp_path / "none")
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert str(tmp_path / "none") in result.stderr
