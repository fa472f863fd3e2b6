from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.client.credentials import ConnectionConfigError
from podium.client.observer import RequestObserver
from podium.client.reflector import Reflector
from podium.config import default_configuration
from podium.daemon.app import App
from podium.daemon.face import Face
from podium.daemon.loop import SchedulingLoop
from podium.daemon.options import Options
from podium.daemon.scheduler import Scheduler
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Node
from podium.objects.resource_types import NODES
from podium.queues import QueueObserver
from podium.sandbox import Sandbox
from podium.server.supervision import ComponentFailedError
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as running:
        yield running


@pytest.fixture
def app(sandbox: Sandbox, tmp_path: Path) -> App:
    kubeconfig = tmp_path / "kubeconfig"
    sandbox.write_kubeconfig(kubeconfig)
    return App(default_configuration(), Options(kubeconfig=str(kubeconfig), secure_port=0))


def create(sandbox: Sandbox, kind: str, **fields: Any) -> None:
    sandbox.store.create({"apiVersion": "v1", "kind": kind, **fields})


async def fail(*_: Any) -> None:
    await anyio.sleep(0.01)
    raise KeyError("mistake")


async def test_it_starts_when_everything_is_in_sync_and_ends_on_stop(app: App, sandbox: Sandbox) -> None:
    for index in range(3):
        create(sandbox, "Node", metadata={"name": f"n{index}"}, status={"allocatable": {"cpu": "4", "pods": "10"}})
    assert app.check_synced() == "handlers are not fully synchronized"

    def check_and_stop() -> None:
        assert app.check_synced() is app.check_shutdown() is None
        text = app.metrics.render().decode()
        assert 'scheduler_cache_size{type="nodes"} 3' in text
        assert 'podium_reflector_lists_total{resource="nodes"} 1' in text
        assert 'podium_events_total{result="given_up"} 0' in text
        assert "podium_writes_in_flight " in text
        app.stop()

    with anyio.fail_after(PATIENCE_S):
        await app.run(check_and_stop)
    assert app.check_shutdown() == "process is shutting down"


async def test_stopped_before_it_is_in_sync_it_never_starts(app: App, sandbox: Sandbox) -> None:
    sandbox.faults.refuse_connections(60.0)
    starts: list[bool] = []
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run, lambda: starts.append(True))
            await anyio.sleep(0.1)
            app.stop()
    assert starts == []


async def test_stopped_before_it_runs_it_ends_at_once(app: App) -> None:
    starts: list[bool] = []
    app.stop()
    with anyio.fail_after(PATIENCE_S):
        await app.run(lambda: starts.append(True))
    assert starts == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it(app: App, number: signal.Signals) -> None:
    with anyio.fail_after(PATIENCE_S), capture_logs() as logs:
        await app.run(lambda: os.kill(os.getpid(), number))
    messages = [(entry["event"], entry.get("signal")) for entry in logs]
    assert ("Requested to terminate, exiting", number.name) in messages
    assert messages[-1] == ("Stopped", None)


@pytest.mark.parametrize(
    ("owner", "part"),
    [(SchedulingLoop, "scheduling loop"), (Reflector, "informers")],
)
async def test_a_part_that_fails_is_logged_and_ends_it(
    app: App, monkeypatch: pytest.MonkeyPatch, owner: type[Any], part: str
) -> None:
    monkeypatch.setattr(owner, "run", fail)
    await run_until_failed(app, part)


@pytest.mark.parametrize("face", [Face(tasks={"recording": fail}), Face(scheduling_tasks={"recording": fail})])
async def test_a_face_that_fails_is_logged_and_ends_it(sandbox: Sandbox, face: Face) -> None:
    options = Options(master=sandbox.url, secure_port=0)
    await run_until_failed(App(default_configuration(), options, faces=[lambda _: face]), "recording")


async def run_until_failed(app: App, part: str) -> None:
    with anyio.fail_after(PATIENCE_S), capture_logs() as logs, pytest.RaisesGroup(ComponentFailedError):
        await app.run()
    ((level, error),) = [(entry["log_level"], entry["exc_info"]) for entry in logs if entry.get("part") == part]
    assert level == "critical"
    assert "mistake" in repr(error)
    assert f'podium_unexpected_errors_total{{where="task",name="{part}"}} 1' in app.metrics.render().decode()


async def test_without_an_api_server_to_talk_to_it_says_so(tmp_path: Path) -> None:
    app = App(default_configuration(), Options(kubeconfig=str(tmp_path / "nowhere"), secure_port=0))
    with pytest.raises(ConnectionConfigError, match="nowhere"):
        await app.run()


class Joins(QueueObserver, RequestObserver):
    """A face that notes when what it consists of is called."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.streams: list[int | None] = []
        self.scheduling = anyio.Event()

    def __call__(self, scheduler: Scheduler) -> Face:
        assert not list(scheduler.informers.informer(NODES).list())
        return Face(
            observers=[self],
            handlers={NODES: self},
            tasks={"first": self.first},
            scheduling_tasks={"second": self.second},
        )

    async def first(self) -> None:
        self.story.append("first")
        await anyio.sleep_forever()

    async def second(self) -> None:
        self.story.append("second")
        self.scheduling.set()
        await anyio.sleep_forever()

    def incoming(self, queue: str, event: str, info: QueuedPodInfo, *, is_moved: bool) -> None:
        self.story.append(f"{queue} {event}")

    def stream_answered(self, status: int | None) -> None:
        self.streams.append(status)

    def on_add(self, new: Node) -> None:
        self.story.append(f"added {new.name}")

    def on_update(self, old: Node, new: Node) -> None: ...

    def on_delete(self, old: Node) -> None: ...

    def on_broken(self, broken_object: Any) -> None: ...


async def test_a_face_runs_from_the_start_hears_of_changes_and_learns_when_scheduling_begins(sandbox: Sandbox) -> None:
    create(sandbox, "Node", metadata={"name": "n1"}, status={"allocatable": {"cpu": "4", "pods": "10"}})
    create(
        sandbox,
        "Pod",
        metadata={"name": "web-1", "namespace": "default"},
        spec={"containers": [{"name": "main", "image": "app"}]},
    )
    face = Joins()
    app = App(default_configuration(), Options(master=sandbox.url, secure_port=0), faces=[face])
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            await face.scheduling.wait()
            app.stop()
    assert sorted(face.story) == ["active UnscheduledPodAdd", "added n1", "first", "second"]
    assert (face.story[0], face.story[-1]) == ("first", "second")
    assert 200 in face.streams
    assert app.metrics.value("scheduler_queue_incoming_pods_total", queue="active", event="UnscheduledPodAdd") == 1
