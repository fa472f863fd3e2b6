"""Questions about a running cluster write nothing, and read no Secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal
from structlog.testing import capture_logs

from podium.sandbox import Sandbox
from podium.sandbox.server import ApiServer
from tests.manifests import node, pod
from tests.unit.cli.commands import run, written

REQUESTS: list[tuple[str, str]] = []


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """That of a cluster with a node and two pods; the requests that it gets are in REQUESTS."""
    REQUESTS.clear()
    answer = ApiServer.handle

    async def noted(self: ApiServer, request: Any) -> web.StreamResponse:
        REQUESTS.append((request.method, request.path))
        return await answer(self, request)

    monkeypatch.setattr(ApiServer, "handle", noted)
    with capture_logs(), start_blocking_portal() as portal, contextlib.ExitStack() as stack:

        async def fill() -> None:
            for each in (node("n1", "2"), pod("web", node="n1"), pod("big", "9")):
                sandbox.store.create(each)

        sandbox = Sandbox(kubelets=False)
        stack.enter_context(portal.wrap_async_context_manager(sandbox))
        portal.call(fill)
        yield sandbox.write_kubeconfig(tmp_path / "kubeconfig")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (["why", "web"], "default/web is on n1"),
        (["why", "big", "--fix"], "default/big fits after one edit"),
        (["what-if", "--drain", "n1"], "web"),
        (["what-if", "--scale", "default/ReplicaSet/web=3"], "has no pod here"),
        (["capacity", "--pod", "pod.yaml", "--explain"], "n1"),
    ],
)
def test_a_question_reads_what_it_needs_and_writes_nothing(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "pod.yaml", pod("new", "1"))
    result = run(*question, "--kubeconfig", kubeconfig)
    assert said in result.stdout + result.stderr
    assert ("GET", "/api/v1/nodes") in REQUESTS
    assert {method for method, _ in REQUESTS} == {"GET"}
    assert not [path for _, path in REQUESTS if "secret" in path]
