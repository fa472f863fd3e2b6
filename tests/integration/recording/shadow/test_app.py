"""The shadow on the embedded API server, in this process and as a command; the tests bind the pods."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import pytest
from aiohttp import web

from podium.config import default_configuration
from podium.insight.evaluate import Evaluator
from podium.plugins import IN_TREE
from podium.recording.shadow.app import Options, ShadowApp
from podium.recording.shadow.report import Reason, Report
from podium.sandbox import Sandbox
from podium.sandbox.pods import bind
from podium.sandbox.server import ApiServer
from tests import lifeline
from tests.control_plane.client import Client
from tests.control_plane.processes import free_ports
from tests.e2e.waiting import eventually
from tests.manifests import node, nodes, pod

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"


def profile_pod(name: str, cpu: str = "1", **fields: Any) -> Json:
    return pod(name, cpu, scheduler="default-scheduler", **fields)


class Cluster:
    """An API server, an admin's client for it, and the HTTP method of every request that podium sent to it."""

    def __init__(self, sandbox: Sandbox, admin: Client, kubeconfig: Path, methods: list[str]) -> None:
        self.sandbox = sandbox
        self.admin = admin
        self.kubeconfig = kubeconfig
        self.methods = methods

    def create(self, *items: Json) -> None:
        for item in items:
            self.sandbox.store.create(item)

    def bind_now(self, name: str, node_name: str) -> None:
        """Bind in the store, without an await during which the shadow could handle watch events."""
        bind(self.sandbox.store, "default", name, {"target": {"name": node_name}})

    async def bind(self, name: str, node_name: str) -> None:
        """Bind through the API, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.admin.create(f"{PODS}/{name}/binding", binding)

    @asynccontextmanager
    async def run_shadow(self, **options: Any) -> AsyncIterator[tuple[ShadowApp, list[Report]]]:
        """Run a shadow in the background; after the block, the list holds its report."""
        app_options = Options(
            config=default_configuration(), classes=IN_TREE, kubeconfig=str(self.kubeconfig), settled_s=0.0, **options
        )
        app, reports, has_started = ShadowApp(app_options), list[Report](), anyio.Event()

        async def run() -> None:
            reports.append(await app.run(has_started.set))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await has_started.wait()
            yield app, reports
            app.stop()


@pytest.fixture
async def cluster(anyio_backend: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    methods: list[str] = []
    handle = ApiServer.handle

    async def record_method(server: ApiServer, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("User-Agent", "").startswith("podium/"):
            methods.append(request.method)
        return await handle(server, request)

    monkeypatch.setattr(ApiServer, "handle", record_method)
    async with Sandbox(kubelet_delay_s=0.0) as sandbox, Client(sandbox.url) as admin:
        yield Cluster(sandbox, admin, sandbox.write_kubeconfig(tmp_path / "kubeconfig"), methods)


def has_metric(app: ShadowApp, line: str) -> Callable[[], Awaitable[bool]]:
    async def is_shown() -> bool:
        return line.encode() in app.metrics.render()

    return is_shown


async def test_bindings_are_compared_and_counted_and_nothing_is_written(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(
        node("big", "16"), node("small", "4", memory="16Gi"), profile_pod("before", node="big"), profile_pod("web")
    )
    file = tmp_path / "disagreements.jsonl"
    async with cluster.run_shadow(scenarios=file) as (app, reports):
        cluster.create(profile_pod("late"), pod("foreign"))
        await cluster.bind("late", "big")
        await eventually(has_metric(app, 'podium_shadow_pods_compared_total{verdict="same node"} 1'))
        await cluster.bind("foreign", "small")
        await cluster.bind("web", "small")
        await eventually(has_metric(app, 'podium_shadow_pods_compared_total{verdict="lower score"} 1'))
        await eventually(has_metric(app, 'podium_shadow_disagreements_total{reason="unexplained"'))
    (report,) = reports
    assert (report.compared_count, report.agreed_count) == (2, 1)
    (disagreement,) = report.disagreements
    assert (disagreement.pod, disagreement.reason) == ("default/web", Reason.UNEXPLAINED)
    (line,) = file.read_bytes().splitlines()
    answer = Evaluator().answer_line(line, "")
    assert answer == {"id": "default/web as seen", **json.loads(line)["expect"]}
    assert cluster.methods
    assert set(cluster.methods) == {"GET"}


async def test_each_binding_is_counted_once_if_the_shadow_stops_before_the_watch_delivers_it(cluster: Cluster) -> None:
    cluster.create(*nodes(200), *(profile_pod(f"web-{number}") for number in range(82)))
    async with cluster.run_shadow() as (app, reports):
        for number in range(82):
            cluster.bind_now(f"web-{number}", f"node-{number}")
        app.stop()
    (report,) = reports
    assert (report.bound_count, report.compared_count) == (82, 82)


async def test_bindings_that_a_broken_watch_missed_are_counted_once(cluster: Cluster) -> None:
    cluster.create(*nodes(2), profile_pod("before", node="node-0"), profile_pod("pending"))
    async with cluster.run_shadow() as (app, reports):

        async def is_expired() -> bool:
            # The watch is opened after the list, and a shadow has started once it has the lists.
            return cluster.sandbox.faults.expire_watches(resource="pods") == 1

        await eventually(is_expired)
        cluster.bind_now("pending", "node-0")
        cluster.create(profile_pod("unseen"))
        cluster.bind_now("unseen", "node-1")
        await eventually(
            has_metric(app, 'podium_shadow_pods_not_compared_total{reason="bound while objects were listed"} 2')
        )
        cluster.create(profile_pod("late"))
        await cluster.bind("late", "node-1")
    (report,) = reports
    assert (report.bound_count, report.compared_count) == (3, 1)


async def test_shadow_serves_health_and_metrics_and_stops_after_its_time_limit(cluster: Cluster) -> None:
    cluster.create(*nodes(2))
    health, metrics = free_ports(2)
    addresses = {"health_address": ("127.0.0.1", health), "metrics_address": ("127.0.0.1", metrics)}
    async with cluster.run_shadow(**addresses) as (_, _), aiohttp.ClientSession() as client:
        for url in (f"http://127.0.0.1:{health}/readyz", f"http://127.0.0.1:{metrics}/metrics"):
            async with client.get(url) as answer:
                assert answer.status == 200
    options = Options(config=default_configuration(), classes=IN_TREE, kubeconfig=str(cluster.kubeconfig), for_s=0.0)
    assert (await ShadowApp(options).run()).compared_count == 0


async def test_comparisons_go_on_if_the_scenario_file_cannot_be_written(cluster: Cluster) -> None:
    cluster.create(node("big", "16"), node("small", "4", memory="16Gi"), profile_pod("web"), profile_pod("more"))
    async with cluster.run_shadow(scenarios=Path("/dev/full")) as (app, _):
        for count, name in enumerate(("web", "more"), start=1):
            await cluster.bind(name, "small")
            await eventually(has_metric(app, f'podium_shadow_pods_compared_total{{verdict="lower score"}} {count}'))
        await eventually(has_metric(app, "podium_shadow_unsettled_disagreements 0"))
        assert b"podium_unexpected_errors_total{" not in app.metrics.render()


async def test_the_command_prints_a_report_when_it_is_stopped(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create(node("big", "16"), node("small", "4", memory="16Gi"), profile_pod("web"), profile_pod("other"))
    file, page, port = tmp_path / "disagreements.jsonl", tmp_path / "page.html", free_ports(1)[0]
    arguments = ("--disagreements", str(file), "--html", str(page), "--metrics-bind-address", f"127.0.0.1:{port}")
    process = start_command(cluster.kubeconfig, *arguments)
    try:
        await _wait_for_metric(port, "podium_shadow_unsettled_disagreements 0")
        await eventually(lambda: _bind_and_check(cluster, port))
        process.send_signal(signal.SIGTERM)
        stdout, stderr = await anyio.to_thread.run_sync(process.communicate)
    finally:
        process.kill()
    assert process.returncode == 0, stderr
    report = json.loads(stdout)
    assert report["compared"] == report["agreed"] + len(report["disagreements"])
    assert set(cluster.methods) == {"GET"}
    assert len(file.read_bytes().splitlines()) == len(report["disagreements"])
    (data,) = re.findall(r'id="data">(.*?)</script>', page.read_text())
    sections = {section["title"]: section for section in json.loads(data)["sections"]}
    assert sum(count for _, count in sections["Verdicts"]["rows"]) == report["compared"]
    assert [name for name, *_ in sections["Nodes by utilisation"]["nodes"]] == ["big", "small"]
    assert max(sections["Pods by zone"]["series"]["no zone"]) >= report["compared"]


def start_command(kubeconfig: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "podium", "shadow", "--kubeconfig", str(kubeconfig), "-o", "json", *options]
    return lifeline.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def _bind_and_check(cluster: Cluster, port: int) -> bool:
    """Create and bind another pod; return True once the shadow has compared one, which it must have seen pending."""
    name = f"web-{len(await cluster.admin.list(PODS))}"
    cluster.create(profile_pod(name))
    await cluster.bind(name, "small")
    return "podium_shadow_pods_compared_total{" in await _metrics(port)


async def _wait_for_metric(port: int, text: str) -> None:
    async def is_shown() -> bool:
        return text in await _metrics(port)

    await eventually(is_shown)


async def _metrics(port: int) -> str:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return await answer.text()
