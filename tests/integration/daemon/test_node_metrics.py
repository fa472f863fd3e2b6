"""podium beside a metrics source: hot nodes, a source that fails, and the same decisions in a replay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.config import KubeSchedulerConfiguration
from podium.daemon import node_metrics
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.faces import FACES
from podium.daemon.options import Options
from podium.engine.configurations import Configurations
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.recording.hashed_names import NameHasher
from podium.recording.recorder import Recorder
from podium.recording.replay import describe_scheduler, replay
from podium.sandbox import Sandbox
from tests.integration.client.waiting import eventually
from tests.manifests import node, pod
from tests.metrics_sources import MetricsStub, metrics_stub, watcher_answer

pytestmark = pytest.mark.anyio

PLUGINS = {**IN_TREE, **CONTRIB}
HOT, COOL = {"CPU": 95.0, "Memory": 10.0}, {"CPU": 10.0, "Memory": 10.0}


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_metrics, "READ_EVERY_S", 0.1)


def configuration(address: str, **args: Any) -> KubeSchedulerConfiguration:
    profile = {
        "schedulerName": "podium",
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeLoad"}]}},
        "pluginConfig": [{"name": "NodeLoad", "args": {"watcherAddress": address, **args}}],
    }
    manifest = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    return Configurations(PLUGINS).of(manifest)


@asynccontextmanager
async def scheduling(
    sandbox: Sandbox,
    config: KubeSchedulerConfiguration,
    directory: Path | None = None,
    hasher: NameHasher | None = None,
) -> AsyncIterator[App]:
    options = Options(master=sandbox.url, secure_port=0, plugins=PLUGINS)
    recorder = None
    faces = FACES
    if directory is not None:
        recorder = Recorder(directory, describe_scheduler(config, options), hasher)
        faces = (*FACES, lambda _: Face(observers=(recorder,)))
    app = App(config, options, faces=faces, boundary=recorder)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            yield app
            app.stop()
    finally:
        if recorder is not None:
            recorder.close()


def node_of(sandbox: Sandbox, name: str) -> str:
    return sandbox.store.get("pods", name, "default")["spec"].get("nodeName", "")


async def place(sandbox: Sandbox, name: str) -> str:
    sandbox.store.create(pod(name, scheduler="podium"))
    await eventually(lambda: node_of(sandbox, name))
    return node_of(sandbox, name)


async def read(app: App, stub: MetricsStub) -> None:
    """Wait until a report is in use that was asked for later than now."""
    labels = {"source": f"LoadWatcher {stub.url}"}
    count = 0.0

    def readings() -> float:
        try:
            return app.metrics.value("podium_node_metrics_readings_total", **labels)
        except KeyError:
            return 0.0

    count = readings()
    await eventually(lambda: readings() >= count + 2)


@pytest.mark.parametrize("hashes", [False, True], ids=["plain", "hashed"])
async def test_pods_go_to_cool_nodes_and_a_replay_agrees(tmp_path: Path, hashes: bool) -> None:
    async with Sandbox(kubelets=False) as sandbox, metrics_stub() as stub:
        for name in ("n1", "n2"):
            sandbox.store.create(node(name, cpu="8"))
        stub.watched = watcher_answer({"n1": HOT, "n2": COOL})
        config = configuration(stub.url)
        hasher = NameHasher.with_new_key() if hashes else None
        async with scheduling(sandbox, config, tmp_path / "recording", hasher) as app:
            await read(app, stub)
            assert {await place(sandbox, f"a{at}") for at in range(4)} == {"n2"}
            stub.watched = watcher_answer({"n1": COOL, "n2": HOT})
            await read(app, stub)
            assert {await place(sandbox, f"b{at}") for at in range(4)} == {"n1"}
            # Nothing fits now; the next report has the pod tried again.
            stub.watched = watcher_answer({"n1": HOT, "n2": HOT})
            await read(app, stub)
            sandbox.store.create(pod("waits", scheduler="podium"))
            await eventually(lambda: "cpu, as measured" in str(sandbox.store.get("pods", "waits", "default")["status"]))
            stub.watched = watcher_answer({"n1": HOT, "n2": COOL})
            await eventually(lambda: node_of(sandbox, "waits"))
            assert node_of(sandbox, "waits") == "n2"
            assert 0 <= app.metrics.value("podium_node_metrics_age_seconds", source=f"LoadWatcher {stub.url}") < 60
    result = await anyio.to_thread.run_sync(replay, tmp_path / "recording", config, PLUGINS)
    assert result.outcome.divergence is None
    assert result.outcome.attempts >= 10


async def test_a_source_that_fails_is_named_once_and_its_last_report_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Sandbox(kubelets=False) as sandbox, metrics_stub() as stub:
        for name in ("n1", "n2"):
            sandbox.store.create(node(name, cpu="8"))
        stub.watched = watcher_answer({"n1": HOT, "n2": COOL})
        with capture_logs() as logs:
            async with scheduling(sandbox, configuration(stub.url)) as app:
                await read(app, stub)
                stub.watched = None
                labels = {"source": f"LoadWatcher {stub.url}"}
                await eventually(lambda: app.metrics.value("podium_node_metrics_failures_total", **labels) >= 2)
                assert await place(sandbox, "web") == "n2"
    lines = [line for line in logs if line["event"] == "Node metrics cannot be read"]
    assert [line["error"] for line in lines] == ["received status code 500 from watcher"]


async def test_pods_are_placed_before_the_first_report() -> None:
    async with Sandbox(kubelets=False) as sandbox:
        sandbox.store.create(node("n1", cpu="8"))
        async with scheduling(sandbox, configuration("http://127.0.0.1:1")):
            assert await place(sandbox, "web") == "n1"
