"""What a command has started ends with it, however it ends."""

from __future__ import annotations

import os
import pty
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from tests.integration.cli.conftest import PODIUM, Start, read_until
from tests.patience import PATIENCE_S
from tests.process_tree import are_gone, children_of, descendants_of, wait_children, wait_gone
from tests.simulation.calm import record_calm
from tests.simulation.random_objects import OURS

PROMPTLY_S = 20.0
"""Far less than what is cut short would take."""

_SPINS = """
from pathlib import Path
from podium.framework import FilterPlugin

class Spins(FilterPlugin):
    def filter(self, state, pod, node):
        Path({there!r}).write_text("x")
        while True:
            pass
"""
_DAWDLES = """
import time
from pathlib import Path
from podium.framework import FilterPlugin

class Dawdles(FilterPlugin):
    def filter(self, state, pod, node):
        with Path({there!r}).open("a") as file:
            file.write("x")
        time.sleep(0.02)
"""
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {ours}
  plugins:
    multiPoint:
      enabled: [{{name: Ledger}}, {{name: Hesitation}}, {{name: {plugin}}}]
"""
PLUGINS = ("--plugin", "tests.simulation.observed:Ledger", "--plugin", "tests.simulation.observed:Hesitation")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording."""
    directory = tmp_path_factory.mktemp("recorded") / "day"
    record_calm(directory, pods=20)
    return directory


def sweep_with(source: str, plugin: str, day: Path, tmp_path: Path) -> tuple[tuple[str | Path, ...], Path]:
    """A sweep in which each attempt calls that plugin, and the file that the plugin writes."""
    marker, file, config = tmp_path / "there", tmp_path / "plugin.py", tmp_path / "config.yaml"
    file.write_text(source.format(there=str(marker)))
    config.write_text(_CONFIG.format(ours=OURS, plugin=plugin))
    arguments = ("sweep", day, "--config", config, "--grid", "NodeResourcesFit=1,2,3", *PLUGINS)
    return (*arguments, "--plugin", f"{file}:{plugin}"), marker


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_of_a_sweep_end_with_it(start: Start, day: Path, tmp_path: Path, number: signal.Signals) -> None:
    arguments, marker = sweep_with(_SPINS, "Spins", day, tmp_path)
    sweep = start(*arguments, "--workers", "2")
    wait_until(marker.exists)
    processes = descendants_of(sweep.pid)
    assert len(processes) >= 2
    # To the command alone: a terminal would send it to the workers as well.
    sweep.send_signal(number)
    assert sweep.wait(PATIENCE_S) == -number
    assert wait_gone(processes, PROMPTLY_S)


def test_workers_that_are_still_starting_end_with_the_sweep(start: Start, day: Path, tmp_path: Path) -> None:
    arguments, _ = sweep_with(_SPINS, "Spins", day, tmp_path)
    sweep = start(*arguments, "--workers", "2")
    processes = wait_children(sweep.pid, 1)
    sweep.kill()
    assert wait_gone(processes, PROMPTLY_S)


def test_workers_of_a_sweep_end_when_its_terminal_is_closed(
    environment: dict[str, str], day: Path, tmp_path: Path
) -> None:
    arguments, marker = sweep_with(_SPINS, "Spins", day, tmp_path)
    pid, terminal = pty.fork()
    if not pid:  # pragma: no cover - it becomes the command
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may ignore it
        os.execvpe(PODIUM[0], [*PODIUM, *map(str, arguments), "--workers", "2"], environment)
    try:
        wait_until(marker.exists)
        processes = descendants_of(pid)
        assert len(processes) >= 2
    finally:
        os.close(terminal)
    os.waitpid(pid, 0)
    assert wait_gone(processes, PROMPTLY_S)


@pytest.fixture(scope="module")
def dask() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster


def test_a_dask_cluster_stops_working_for_a_sweep_that_was_killed(
    dask: LocalCluster, start: Start, day: Path, tmp_path: Path
) -> None:
    arguments, marker = sweep_with(_DAWDLES, "Dawdles", day, tmp_path)
    sweep = start(*arguments, "--dask", dask.scheduler_address)
    wait_until(marker.exists)
    sweep.kill()
    sweep.wait()

    def is_quiet() -> bool:
        size = marker.stat().st_size
        time.sleep(1.0)
        return marker.stat().st_size == size

    stopped_s = time.monotonic()
    wait_until(is_quiet)
    assert time.monotonic() - stopped_s < PROMPTLY_S


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_api_server_of_a_demo_ends_with_it(
    start: Start, environment: dict[str, str], number: signal.Signals
) -> None:
    demo = start("demo", "--nodes", "200", "--pods", "2000")
    read_until(demo, ["creating"])
    processes = children_of(demo.pid)
    assert processes
    demo.send_signal(number)
    assert wait_gone([demo.pid, *processes], PROMPTLY_S)
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def test_the_api_server_of_a_demo_ends_with_it_even_if_it_hangs(start: Start) -> None:
    demo = start("demo", "--nodes", "200", "--pods", "2000")
    read_until(demo, ["creating"])
    (server,) = children_of(demo.pid)
    os.kill(server, signal.SIGSTOP)
    demo.kill()
    time.sleep(0.2)
    assert not are_gone([server])
    os.kill(server, signal.SIGCONT)
    assert wait_gone([server], PROMPTLY_S)


@pytest.mark.parametrize("arguments", [("sandbox", "--nodes", "2")], ids=["sandbox"])
def test_a_command_without_processes_of_its_own_leaves_none(start: Start, arguments: tuple[str, ...]) -> None:
    command = start(*arguments)
    read_until(command, ["Serving on"])
    processes = descendants_of(command.pid)
    command.kill()
    command.wait()
    assert processes == []
