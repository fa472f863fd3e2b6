"""How many instructions podium executes for each pod, counted by valgrind: a measure for comparing two commits.

CPU time differs by a third between runs of the same commit where a machine shares its cores; the count differs by about
2 %, even beside other work. It leaves out what the kernel does, and misses of caches.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.table import Table

import podium
from benchmarks.profiles import bind_backlog
from benchmarks.workloads import Workload
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import ServerProcess, StartError

NODES: Final = 500
PODS: Final = 1_800
_FEWER: Final = 6
"""Start-up is left out by counting a second run with this fraction of the pods."""
_STOP_S_MAX: Final = 120.0
_COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")


@dataclass(frozen=True, slots=True)
class Count:
    """The instructions of one workload. The others of a run, such as its start, are not in `per_pod`."""

    workload: str
    nodes: int
    pods: int
    per_pod: float


def measure(workload: Workload, nodes: int, pods: int, binaries: Binaries) -> Count:
    """Count twice, with some of the pods and with all of them.

    Raises:
        StartError: there is no valgrind.
        StallError: not all pods were bound.
    """
    if shutil.which("valgrind") is None:
        raise StartError("valgrind counts the instructions, and is not installed")
    # Compiling would count for the first run only.
    compileall.compile_dir(Path(podium.__file__).parent, quiet=1)
    os.environ["PYTHONHASHSEED"] = "0"
    all_pods = workload.pods_that_fit(nodes, pods)
    some_pods = all_pods // _FEWER
    part_count, every = (_count(workload, nodes, pod_count, binaries) for pod_count in (some_pods, all_pods))
    return Count(workload.name, nodes, all_pods, (every - part_count) / (all_pods - some_pods))


def _count(workload: Workload, nodes: int, pods: int, binaries: Binaries) -> int:
    with TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        tool = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
        command = (*tool, f"--log-file={log}", sys.executable, "-m", "podium", "run")
        bind_backlog(command, workload, nodes, pods, binaries, _end)
        return total(log.read_text())


def total(log: str) -> int:
    """The count in valgrind's log. Raises: ValueError if it has none."""
    match = _COUNT.search(log)
    if match is None:
        raise ValueError(f"valgrind has counted nothing:\n{log}")
    return int(match[1].replace(",", ""))


def _end(process: ServerProcess) -> None:
    """Have podium end by itself: under valgrind it takes longer than servers are given, and the count comes last."""
    os.kill(process.pid, signal.SIGTERM)
    ends_s = time.monotonic() + _STOP_S_MAX
    while process.is_running and time.monotonic() < ends_s:
        time.sleep(0.1)


def table(counts: Iterable[Count]) -> Table:
    """One row for each workload."""
    rich_table = Table(title="Instructions per pod, user space", title_justify="left")
    for heading in ("workload", "nodes", "pods", "thousands per pod"):
        rich_table.add_column(heading, justify="left" if heading == "workload" else "right")
    for count in counts:
        rich_table.add_row(count.workload, f"{count.nodes:,}", f"{count.pods:,}", f"{count.per_pod / 1e3:,.0f}")
    return rich_table
