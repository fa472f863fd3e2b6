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
    kubeconfig, added = tmp_path / "kubeconfig", tmp_path / "web.yaml"
    added.write_text(WEB)
    read_until(start("sandbox", "--nodes", "3", "--write-kubeconfig", kubeconfig), ["Serving on"])
    asked = ("plan", "--kubeconfig", kubeconfig, "--add", added, "--output", "json")
    refused = podium(*asked)
    assert refused.returncode == 1
    assert "--adopt-nodes" in refused.stderr
    done = podium(*asked, "--adopt-nodes")
    assert complaints(done.stderr) == []
    answer = json.loads(done.stdout)
    placed = sum(len(pods) for pods in answer["existing"].values())
    assert placed > 0
    assert placed + sum(len(each["pods"]) for each in answer["new_nodes"]) == 9
    assert json.loads(podium(*asked, "--adopt-nodes").stdout) == answer


def test_cluster_that_cannot_be_reached_is_a_plain_message(podium: Podium, tmp_path: Path) -> None:
    done = podium("plan", "--kubeconfig", tmp_path / "none")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(tmp_path / "none") in done.stderr
