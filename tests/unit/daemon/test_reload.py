from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from podium.binder.events.event import ObjectReference
from podium.client.credentials import ConnectionConfigError
from podium.config import default_configuration
from podium.daemon import reload
from podium.daemon.configuration_source import ConfigurationSource
from podium.daemon.reload import LOOKS_UNTIL_NEXT_TRIAL, Reload, own_pod
from podium.daemon.restarts import RestartNeededError
from podium.lib.thread_call import ThreadCall
from podium.objects.resource_types import NODES
from podium.plugins.loading.discovery import discover, reference_being_loaded
from podium.telemetry import Metrics
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

POD = ObjectReference("v1", "Pod", "podium-0", "kube-system", "uid")
OLD, NEW = {"Picky": object}, {"Picky": int}


@dataclass
class FakeScheduler:
    """Takes what it is given, or raises."""

    refuses: Exception | None = None
    config: Any = field(default_factory=default_configuration)
    classes: Any = field(default_factory=lambda: OLD)
    configurations: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)

    kubeconfig: Any = None

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.informers = SimpleNamespace(informer=lambda resource: resource)
        self.writes = SimpleNamespace(recorder=SimpleNamespace(record=self.events.append))

    def new_plugins(self, config: Any, classes: Any) -> Any:
        while config == "never constructed":
            pass
        return config

    def reload(self, config: Any, classes: Any, new: Any) -> tuple[str, ...]:
        assert new == config
        if self.refuses is not None:
            raise self.refuses
        self.configurations.append((config, classes))
        return ("podium",)


class Bench:
    """A configuration of two files."""

    def __init__(self, tmp_path: Path, scheduler: FakeScheduler) -> None:
        self.config, self.plugin = tmp_path / "config.yaml", tmp_path / "picky.py"
        self.config.write_text("1")
        self.plugin.write_text("1")
        self.scheduler = scheduler
        self.awake = threading.Event()
        source = ConfigurationSource(self.config, [self.plugin], self.read)
        self.reload = Reload(scheduler, source, POD)  # type: ignore[arg-type]

    def read(self) -> Any:
        text = self.config.read_text()
        while text == "spin":
            pass
        if text == "sleep":
            self.awake.wait()
        if text == "bad":
            raise ValueError("no configuration")
        return SimpleNamespace(config=text, plugins=NEW)


async def test_nothing_is_read_while_the_files_are_as_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    await bench.reload.look()
    bench.config.write_text("1")
    await bench.reload.look()
    assert bench.scheduler.configurations == bench.scheduler.events == []


async def test_a_changed_configuration_is_taken_with_the_classes_of_unchanged_plugins(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    bench.config.write_text("2")
    await bench.reload.look()
    bench.plugin.write_text("2")
    await bench.reload.look()
    assert bench.scheduler.configurations == [("2", OLD), ("2", NEW)]
    assert bench.scheduler.metrics.value("podium_configuration_reloads_total", result="applied") == 2
    assert [(event.type, event.reason, event.regarding) for event in bench.scheduler.events] == [
        ("Normal", "ConfigurationReloaded", POD)
    ] * 2


@pytest.mark.parametrize(
    ("text", "refuses", "why"),
    [
        ("bad", None, "ValueError: no configuration"),
        ("2", RestartNeededError("extenders: restart"), "extenders: restart"),
    ],
)
async def test_what_cannot_be_used_is_told_once_and_mended_later(
    tmp_path: Path, text: str, refuses: Exception | None, why: str
) -> None:
    bench = Bench(tmp_path, FakeScheduler(refuses))
    bench.config.write_text(text)
    await bench.reload.look()
    await bench.reload.look()
    assert bench.reload.refusals == why
    assert [(event.type, event.reason) for event in bench.scheduler.events] == [("Warning", "ConfigurationRefused")]
    assert bench.scheduler.metrics.value("podium_configuration_reloads_total", result="refused") == 1
    bench.scheduler.refuses = None
    bench.config.write_text("3")
    await bench.reload.look()
    assert bench.reload.refusals == ""
    assert bench.scheduler.configurations == [("3", OLD)]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "SAY_AFTER_S", 0.05)
    monkeypatch.setattr(reload, "LOAD_S_MAX", 0.2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("text", ["sleep", "spin"])
async def test_files_that_are_not_read_in_time_are_said_to_be_and_refused(tmp_path: Path, text: str) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    bench.config.write_text(text)
    with capture_logs() as logs:
        await bench.reload.look()
    assert logs[0]["event"] == "Reading the changed configuration takes long"
    assert bench.reload.refusals == "reading the files did not end within 0 s"
    bench.config.write_text("3")
    await bench.reload.look()
    assert bench.reload.refusals == ""
    assert bench.scheduler.configurations == [("3", OLD)]
    bench.awake.set()


@pytest.mark.parametrize("text", ["sleep", "spin"])
async def test_a_stop_does_not_wait_for_files_that_are_being_read(tmp_path: Path, text: str) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    bench.config.write_text(text)
    with anyio.move_on_after(0.3) as stopping:
        await bench.reload.look()
    assert stopping.cancelled_caught
    bench.awake.set()


@pytest.mark.usefixtures("hasty")
async def test_plugins_that_are_not_constructed_in_time_are_said_to_be_and_the_previous_ones_stay(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    bench.config.write_text("never constructed")
    with capture_logs() as logs:
        await bench.reload.look()
    assert logs[0]["event"] == "Constructing the changed plugins takes long"
    assert bench.reload.refusals == "constructing the plugins did not end within 0 s"
    assert bench.scheduler.configurations == []
    bench.config.write_text("3")
    await bench.reload.look()
    assert (bench.reload.refusals, bench.scheduler.configurations) == ("", [("3", OLD)])


@pytest.mark.parametrize("does", ["import time; time.sleep(3600)", "while True: pass"])
async def test_the_plugin_whose_import_does_not_end_is_known(tmp_path: Path, does: str) -> None:
    plugin = tmp_path / "picky.py"
    plugin.write_text(does)
    call = ThreadCall(lambda: discover([f"{plugin}:Picky"]), "test")

    def reference() -> str:
        frame = call.frame()
        return "" if frame is None or frame.f_code.co_filename != str(plugin) else reference_being_loaded(frame)

    with anyio.fail_after(PATIENCE_S):
        while not reference():  # noqa: ASYNC110 - the call does not end
            await anyio.sleep(0.01)
    assert reference() == f"{plugin}:Picky"
    call.interrupt()


class Kubeconfig:
    """A kubeconfig that changes with its number."""

    def __init__(self) -> None:
        self.version = 1
        self.refuses: Exception | None = None
        self.versions: list[int] = []
        self.trials = 0
        self.credentials = SimpleNamespace(base_url="https://api")

    def content(self) -> bytes:
        return b"%d" % self.version

    async def take(self, resource_type: Any) -> None:
        assert resource_type is NODES
        self.trials += 1
        if self.refuses is not None:
            raise self.refuses
        self.versions.append(self.version)


async def test_a_changed_kubeconfig_is_taken_once(tmp_path: Path) -> None:
    kubeconfig = Kubeconfig()
    bench = Bench(tmp_path, FakeScheduler(kubeconfig=kubeconfig))
    await bench.reload.look()
    kubeconfig.version = 2
    await bench.reload.look()
    await bench.reload.look()
    assert kubeconfig.versions == [2]
    assert bench.scheduler.configurations == []
    assert [(event.reason, event.note) for event in bench.scheduler.events] == [
        ("ConfigurationReloaded", "The changed kubeconfig is in use")
    ]


async def test_a_bad_kubeconfig_and_a_bad_configuration_are_told_and_mended_each_by_itself(tmp_path: Path) -> None:
    kubeconfig = Kubeconfig()
    bench = Bench(tmp_path, FakeScheduler(kubeconfig=kubeconfig))
    kubeconfig.version, kubeconfig.refuses = 2, ConnectionConfigError("kubeconfig x: no users")
    bench.config.write_text("bad")
    with capture_logs() as logs:
        await bench.reload.look()
    assert [(entry["event"], entry["error"]) for entry in logs] == [
        ("The changed kubeconfig is refused, the previous credentials stay in use", "kubeconfig x: no users"),
        ("The changed configuration is refused, the previous one stays in use", "ValueError: no configuration"),
    ]
    assert bench.reload.refusals == "kubeconfig x: no users; ValueError: no configuration"
    assert bench.scheduler.metrics.value("podium_configuration_reloads_total", result="refused") == 2
    assert [event.note for event in bench.scheduler.events] == [
        "The previous kubeconfig stays in use: kubeconfig x: no users",
        "The previous configuration stays in use: ValueError: no configuration",
    ]
    bench.config.write_text("3")
    await bench.reload.look()
    assert bench.reload.refusals == "kubeconfig x: no users"
    kubeconfig.version, kubeconfig.refuses = 3, None
    await bench.reload.look()
    assert bench.reload.refusals == ""


async def test_a_kubeconfig_that_is_refused_while_the_api_server_is_away_is_tried_again(tmp_path: Path) -> None:
    kubeconfig = Kubeconfig()
    bench = Bench(tmp_path, FakeScheduler(kubeconfig=kubeconfig))
    kubeconfig.version, kubeconfig.refuses = 2, ConnectionConfigError("kubeconfig x: connection refused")
    for _ in range(3 * LOOKS_UNTIL_NEXT_TRIAL):
        await bench.reload.look()
    assert kubeconfig.trials == 3
    assert [event.note for event in bench.scheduler.events] == [
        "The previous kubeconfig stays in use: kubeconfig x: connection refused"
    ]
    kubeconfig.refuses = None
    for _ in range(2 * LOOKS_UNTIL_NEXT_TRIAL):
        await bench.reload.look()
    assert kubeconfig.versions == [2]
    assert bench.reload.refusals == ""


async def test_a_file_that_is_away_while_it_is_replaced_is_looked_at_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FakeScheduler())
    bench.config.unlink()
    await bench.reload.look()
    bench.config.write_text("2")
    await bench.reload.look()
    assert bench.scheduler.configurations == [("2", OLD)]


def test_the_own_pod_is_what_the_downward_api_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POD_NAME", "POD_NAMESPACE", "POD_UID"):
        monkeypatch.delenv(name, raising=False)
    assert own_pod() is None
    for name, value in {"POD_NAME": "podium-0", "POD_NAMESPACE": "kube-system", "POD_UID": "uid"}.items():
        monkeypatch.setenv(name, value)
    assert own_pod() == POD
