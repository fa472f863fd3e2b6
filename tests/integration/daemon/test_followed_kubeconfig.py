"""A kubeconfig that changes while podium runs."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import anyio
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from podium.config import default_configuration
from podium.daemon.app import App
from podium.daemon.configuration_source import ConfigurationSource
from podium.daemon.options import Options
from podium.plugins import IN_TREE
from podium.sandbox import Sandbox
from tests.integration.client.waiting import eventually
from tests.manifests import Json, node, pod

pytestmark = pytest.mark.anyio

IN_USE = "The changed kubeconfig is in use"
REFUSED = "The changed kubeconfig is refused, the previous credentials stay in use"
RELOADS = "podium_configuration_reloads_total"


@pytest.fixture(autouse=True)
def garbage_collection() -> Iterator[None]:
    """A daemon has the process for itself and settles its collector."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


class Bench:
    """podium, a cluster, and the kubeconfig through which podium reaches it."""

    def __init__(self, sandbox: Sandbox, path: Path) -> None:
        self.sandbox = sandbox
        self._path = path
        sandbox.store.create(node("n1", cpu="64"))
        sandbox.write_kubeconfig(path)
        read = SimpleNamespace(config=default_configuration(), plugins=IN_TREE)
        source = ConfigurationSource(None, (), lambda: read)
        self.app = App(default_configuration(), Options(kubeconfig=str(path), secure_port=0, source=source))
        self.has_started = anyio.Event()

    def reads(self, content: str | Json) -> None:
        """Change the kubeconfig, and have podium look at it."""
        new_file = self._path.with_suffix(".new")
        new_file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        new_file.replace(self._path)
        os.kill(os.getpid(), signal.SIGHUP)

    async def wait_reloads(self, result: str, count: int) -> None:
        await eventually(lambda: self.app.metrics.value(RELOADS, result=result) == count)

    async def binds(self, name: str) -> None:
        self.sandbox.store.create(pod(name, scheduler="default-scheduler"))
        await eventually(lambda: self.sandbox.store.get("pods", name, "default")["spec"].get("nodeName"))

    async def other_token(self) -> str:
        """The token of a service account."""
        self.sandbox.store.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "podium", "namespace": "default"}}
        )
        path = "/api/v1/namespaces/default/serviceaccounts/podium/token"
        headers = {"Authorization": f"Bearer {self.sandbox.token}"}
        body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        async with (
            aiohttp.ClientSession(self.sandbox.url, headers=headers) as client,
            client.post(path, json=body) as answer,
        ):
            return str((await answer.json())["status"]["token"])

    def kubeconfig(self, server: str, **user: Any) -> Json:
        content = self.sandbox.kubeconfig()
        content["clusters"][0]["cluster"]["server"] = server
        content["users"][0]["user"] = user
        return content


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Bench]:
    async with Sandbox(token="first", kubelets=False) as sandbox:
        bench = Bench(sandbox, path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.app.run, bench.has_started.set)
            await bench.has_started.wait()
            yield bench
            bench.app.stop()


async def test_all_requests_use_the_changed_kubeconfig(tmp_path: Path) -> None:
    async with running(tmp_path / "kubeconfig") as bench:
        await bench.binds("before")
        host = f"localhost:{bench.sandbox.port}"
        with capture_logs() as logs:
            bench.reads(bench.kubeconfig(f"http://{host}", token=await bench.other_token()))
            await bench.wait_reloads("applied", 1)
        assert (IN_USE, f"http://{host}") in [(entry["event"], entry.get("server")) for entry in logs]
        await bench.binds("after")
        labels = {"code": "201", "method": "POST", "host": host}
        await eventually(lambda: bench.app.metrics.value("rest_client_requests_total", **labels) > 0)
        renewed = {"code": "200", "method": "PUT", "host": host}
        await eventually(lambda: bench.app.metrics.value("rest_client_requests_total", **renewed) > 0)


async def log_in(request: web.Request) -> web.Response:
    return web.Response(text="<html>Please log in</html>", content_type="text/html")


async def test_a_kubeconfig_that_cannot_be_used_changes_nothing_and_is_told(tmp_path: Path) -> None:
    page = web.Application()
    page.router.add_get("/{path:.*}", log_in)
    async with (
        running(tmp_path / "kubeconfig") as bench,
        Sandbox(token="first", kubelets=False) as second_sandbox,
        TestServer(page) as portal,
    ):
        second_sandbox.store.create(node("n1"))
        bad: list[tuple[str | Json, str]] = [
            ("clusters: [", "kubeconfig"),
            (bench.kubeconfig(bench.sandbox.url, token="wrong"), "listing nodes with it fails"),
            (bench.kubeconfig("http://127.0.0.1:1", token="first"), "listing nodes with it fails"),
            (bench.kubeconfig(str(portal.make_url("/")), token="first"), "the answer is no list of nodes"),
            (
                bench.kubeconfig(second_sandbox.url, token="first"),
                f"{second_sandbox.url} is another cluster than {bench.sandbox.url}",
            ),
        ]
        for number, (content, why) in enumerate(bad, 1):
            with capture_logs() as logs:
                bench.reads(content)
                await bench.wait_reloads("refused", number)
            (message,) = [entry["error"] for entry in logs if entry["event"] == REFUSED]
            assert why in message
            await bench.binds(f"web-{number}")
        bench.reads(bench.kubeconfig(bench.sandbox.url, token="first"))
        await bench.wait_reloads("applied", 1)
        await eventually(lambda: bench.app.metrics.value("podium_configuration_last_reload_successful") == 1)
