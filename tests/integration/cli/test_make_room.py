"""`podium make-room --carry-out` against a cluster that serves HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

from podium.sandbox import Sandbox
from tests.integration.insight.room.test_carrying_out import ONE_MOVE
from tests.unit.cli.commands import run
from tests.workload_manifests import budget


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A cluster in which one move makes room, without a scheduler."""
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:
        server = Sandbox(kubelets=False)
        stack.enter_context(portal.wrap_async_context_manager(server))
        for item in ONE_MOVE:
            portal.call(server.store.put_raw, item)
        yield server


@pytest.fixture
def kubeconfig(sandbox: Sandbox, tmp_path: Path) -> Path:
    return sandbox.write_kubeconfig(tmp_path / "kubeconfig")


def nodes_by_name(sandbox: Sandbox) -> dict[str, bool]:
    return {item["metadata"]["name"]: item["spec"].get("unschedulable", False) for item in sandbox.store.list("nodes")}


def test_a_dry_run_asks_the_api_server_and_changes_nothing(sandbox: Sandbox, kubeconfig: Path) -> None:
    result = run("make-room", "--kubeconfig", kubeconfig, "--for", "default/big", "--carry-out", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "dry run: default/web-1 could be evicted from n1" in result.stdout
    assert nodes_by_name(sandbox) == {"n1": False, "n2": False}
    assert len(sandbox.store.list("pods")) == 2


def test_what_would_be_refused_does_not_begin(sandbox: Sandbox, kubeconfig: Path) -> None:
    # The answer goes by the budget's rule; the API server by its status, which nothing here has computed.
    sandbox.store.put_raw(budget({"app": "web"}, minAvailable=0))
    result = run("make-room", "--kubeconfig", kubeconfig, "--for", "default/big", "--carry-out")
    assert result.exit_code == 1
    assert "a PodDisruptionBudget does not allow to evict default/web-1 now" in result.stderr
    assert nodes_by_name(sandbox) == {"n1": False, "n2": False}


def test_a_step_that_takes_too_long_ends_the_command(sandbox: Sandbox, kubeconfig: Path) -> None:
    arguments = ("make-room", "--kubeconfig", kubeconfig, "--for", "default/big", "--carry-out", "--step-timeout", "1s")
    result = run(*arguments)
    assert result.exit_code == 1
    assert "stopped after 0 of 1 moves: no pod was created in the place of default/web-1 after 1 s" in result.stderr
    assert nodes_by_name(sandbox) == {"n1": False, "n2": False}
