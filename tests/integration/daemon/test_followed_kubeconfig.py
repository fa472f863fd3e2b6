"""A kubeconfig that changes while podium runs."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
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


class Daemon:
    """podium's daemon in this process, a cluster, and the kubeconfig through which the daemon reaches it."""

    def __init__(self, sandbox: Sandbox, path: Path) -> None:
        self.sandbox = sandbox
        self._path = path
        sandbox.store.create(node("n1", cpu="64"))
        sandbox.write_kubeconfig(path)
        configured = SimpleNamespace(config=default_configuration(), plugins=IN_TREE)
        source = ConfigurationSource(None, (), lambda: configured)
        self.app = App(default_configuration(), Options(kubeconfig=str(path), secure_port=0, source=source))
        self.has_started = anyio.Event()

    def replace_kubeconfig(self, content: str | Json) -> None:
        """Replace the kubeconfig, and signal podium to reload it."""
        new_file = self._path.with_suffix(".new")
        new_file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        new_file.replace(self._path)
        os.kill(os.getpid(), signal.SIGHUP)

    async def wait_for_reloads(self, result: str, count: int) -> None:
        await eventually(lambda: self.app.metrics.value(RELOADS, result=result) == count)

    async def create_pod_and_wait_bound(self, name: str) -> None:
        self.sandbox.store.create(pod(name, scheduler="default-scheduler"))
        await eventually(lambda: self.sandbox.store.get("pods", name, "default")["spec"].get("nodeName"))

    async def service_account_token(self) -> str:
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
async def run_daemon(path: Path) -> AsyncIterator[Daemon]:
    async with Sandbox(token="first", kubelets=False) as sandbox:
        daemon = Daemon(sandbox, path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(daemon.app.run, daemon.has_started.set)
            await daemon.has_started.wait()
            yield daemon
            daemon.app.stop()


async def test_all_requests_use_the_changed_kubeconfig(tmp_path: Path) -> None:
    async with run_daemon(tmp_path / "kubeconfig") as daemon:
        await daemon.create_pod_and_wait_bound("before")
        host = f"localhost:{daemon.sandbox.port}"
        with capture_logs() as logs:
            daemon.replace_kubeconfig(daemon.kubeconfig(f"http://{host}", token=await daemon.service_account_token()))
            await daemon.wait_for_reloads("applied", 1)
        assert (IN_USE, f"http://{host}") in [(entry["event"], entry.get("server")) for entry in logs]
        await daemon.create_pod_and_wait_bound("after")
        labels = {"code": "201", "method": "POST", "host": host}
        await eventually(lambda: daemon.app.metrics.value("rest_client_requests_total", **labels) > 0)
        lease_labels = {"code": "200", "method": "PUT", "host": host}
        await eventually(lambda: daemon.app.metrics.value("rest_client_requests_total", **lease_labels) > 0)


async def log_in(request: web.Request) -> web.Response:
    return web.Response(text="<html>Please log in</html>", content_type="text/html")


async def test_an_unusable_kubeconfig_changes_nothing_and_is_logged(tmp_path: Path) -> None:
    login_page = web.Application()
    login_page.router.add_get("/{path:.*}", log_in)
    async with (
        run_daemon(tmp_path / "kubeconfig") as daemon,
        Sandbox(token="first", kubelets=False) as second_sandbox,
        TestServer(login_page) as portal,
    ):
        second_sandbox.store.create(node("n1"))
        unusable: list[tuple[str | Json, str]] = [
            ("clusters: [", "kubeconfig"),
            (daemon.kubeconfig(daemon.sandbox.url, token="wrong"), "listing nodes with it fails"),
            (daemon.kubeconfig("http://127.0.0.1:1", token="first"), "listing nodes with it fails"),
            (daemon.kubeconfig(str(portal.make_url("/")), token="first"), "the answer is not a list of nodes"),
            (
                daemon.kubeconfig(second_sandbox.url, token="first"),
                f"{second_sandbox.url} is another cluster than {daemon.sandbox.url}",
            ),
        ]
        for number, (content, reason) in enumerate(unusable, 1):
            with capture_logs() as logs:
                daemon.replace_kubeconfig(content)
                await daemon.wait_for_reloads("refused", number)
            (message,) = [entry["error"] for entry in logs if entry["event"] == REFUSED]
            assert reason in message
            await daemon.create_pod_and_wait_bound(f"web-{number}")
        daemon.replace_kubeconfig(daemon.kubeconfig(daemon.sandbox.url, token="first"))
        await daemon.wait_for_reloads("applied", 1)
        await eventually(lambda: daemon.app.metrics.value("podium_configuration_last_reload_successful") == 1)
