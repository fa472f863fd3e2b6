"""Questions to a running cluster are about the pods and claims that would exist, with what that cluster holds."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

from podium.sandbox import Sandbox
from tests.device_manifests import device_class, devices, exactly, resource_slice
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects
from tests.workload_manifests import claims_from, device_claim_template, limit_range, priority_class, workload

DEVICES = 2


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """That of a cluster with a node of four CPUs and two devices, a LimitRange and a PriorityClass."""
    objects = (
        node("n1", "4"),
        device_class(),
        resource_slice("gpus", devices(DEVICES), node="n1"),
        device_claim_template("gpu", exactly()),
        limit_range({"type": "Container", "defaultRequest": {"cpu": "3"}}),
        priority_class("urgent", 1000),
        pod("train", "100m", resourceClaims=claims_from("gpu")),
        pod("runs", "100m", node="n1", resourceClaims=claims_from("gpu")),
        pod("low", "3", node="n1"),
    )
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:
        sandbox = Sandbox(kubelets=False)
        stack.enter_context(portal.wrap_async_context_manager(sandbox))
        for manifest in objects:
            portal.call(sandbox.store.create, manifest)
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


def _ask(kubeconfig: Path, manifest: dict[str, object], tmp_path: Path, *question: str) -> dict[str, object]:
    option = "--apply" if question[0] == "what-if" else "--pod"
    result = run(
        *question, option, write_objects(tmp_path / "asked.yaml", manifest), "--kubeconfig", kubeconfig, "-o", "json"
    )
    assert result.exit_code == 0, result.output
    answer: dict[str, object] = json.loads(result.stdout)
    return answer


def test_claims_are_made_from_templates(kubeconfig: Path, tmp_path: Path) -> None:
    train = workload("Deployment", "other", cpu="100m", pod_spec={"resourceClaims": claims_from("gpu")})
    assert _ask(kubeconfig, train, tmp_path, "evaluate")["node"] == "n1"
    assert _ask(kubeconfig, train, tmp_path, "capacity")["fits"] == DEVICES


@pytest.mark.parametrize("name", ["train", "runs"])
def test_the_claims_of_pods_that_are_there_are_known(kubeconfig: Path, name: str) -> None:
    result = run("why", name, "--kubeconfig", kubeconfig, "--lease", "", "-o", "json")
    assert json.loads(result.stdout)["node"] == "n1"


def test_limits_and_classes_of_the_cluster_count(kubeconfig: Path, tmp_path: Path) -> None:
    bare = workload("Deployment", "bare", pod_spec={"containers": [{"name": "main"}]})
    assert _ask(kubeconfig, bare, tmp_path, "evaluate")["node"] is None
    urgent = workload("Deployment", "urgent", cpu="3", pod_spec={"priorityClassName": "urgent"}, replicas=1)
    answer = _ask(kubeconfig, urgent, tmp_path, "what-if")
    assert "default/low" in json.dumps(answer["preempted"])
