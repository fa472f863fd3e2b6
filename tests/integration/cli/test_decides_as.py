"""Questions to a running cluster are answered by the rules of its own minor, and say so."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

import podium
from podium.config import NEWEST
from podium.sandbox import Sandbox, discovery
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

OLD = "1.36"
NOTE = f"deciding as kube-scheduler {OLD}: the API server is v1.36.2\n"

QUESTIONS = (
    ("why", "waits"),
    ("why", "waits", "--lease", ""),
    ("capacity", "--pod", "POD"),
    ("capacity", "--pod", "POD", "--headroom", "3"),
    ("what-if", "--apply", "POD"),
    ("evaluate", "--pod", "POD"),
    ("estimate", "--workload", "POD", "--mode", "accurate"),
)


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That of a cluster of an old minor, with a node and a pod that waits."""
    monkeypatch.setitem(discovery.VERSION, "minor", "36+")
    monkeypatch.setitem(discovery.VERSION, "gitVersion", "v1.36.2")
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:
        sandbox = Sandbox(kubelets=False)
        stack.enter_context(portal.wrap_async_context_manager(sandbox))
        for manifest in (node("n1", "4"), pod("waits", "1")):
            portal.call(sandbox.store.create, manifest)
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def pod_file(tmp_path: Path) -> str:
    return str(write_objects(tmp_path / "pod.yaml", pod("asked", "1")))


def _question(template: tuple[str, ...], pod_file: str) -> list[str]:
    return [pod_file if word == "POD" else word for word in template]


@pytest.mark.parametrize("template", QUESTIONS, ids=" ".join)
def test_the_clusters_own_minor_decides(kubeconfig: Path, pod_file: str, template: tuple[str, ...]) -> None:
    question = [*_question(template, pod_file), "--kubeconfig", kubeconfig, "-o", "json"]
    result = run(*question)
    assert (json.loads(result.stdout)["decidesAs"], result.stderr) == (OLD, NOTE)
    result = run(*question, "--decide-as", NEWEST.minor)
    assert (json.loads(result.stdout)["decidesAs"], result.stderr) == (NEWEST.minor, "")


@pytest.mark.parametrize("command", ["plan", "consolidate"])
def test_plans_by_podiums_rules_are_by_those_of_the_clusters_minor(kubeconfig: Path, command: str) -> None:
    result = run(command, "--kubeconfig", kubeconfig, "--adopt-nodes", "--rules", "podium", "-o", "json")
    assert NOTE in result.stderr
    result = run(command, "--kubeconfig", kubeconfig, "--adopt-nodes", "--decide-as", OLD)
    assert "--decide-as are for --rules podium" in result.stderr


def test_files_are_answered_by_the_newest_rules(pod_file: str, tmp_path: Path) -> None:
    cluster = write_objects(tmp_path / "cluster.yaml", node("n1", "4"))
    result = run("capacity", "-f", cluster, "--pod", pod_file, "-o", "json")
    assert json.loads(result.stdout)["decidesAs"] == NEWEST.minor


def test_cluster_of_the_library_has_the_rules_of_its_own_minor(kubeconfig: Path) -> None:
    assert podium.Cluster.load(kubeconfig).release.minor == OLD
    assert podium.Cluster.load(kubeconfig, decide_as=NEWEST.minor).release.minor == NEWEST.minor


def test_server_that_hides_its_version_is_said_to_do_so(
    kubeconfig: Path, pod_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(discovery.VERSION, "minor")
    result = run("capacity", "--pod", pod_file, "--kubeconfig", kubeconfig, "-o", "json")
    assert json.loads(result.stdout)["decidesAs"] == NEWEST.minor
    assert result.stderr.startswith(f"warning: deciding as kube-scheduler {NEWEST.minor}: the API server hides its ver")
