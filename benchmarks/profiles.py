"""Where podium's time goes, by function: the engine alone, and the daemon on a real API server."""

from __future__ import annotations

import cProfile
import pstats
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from rich.table import Table

from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster, prepare
from benchmarks.etcd import Etcd
from benchmarks.in_process import FullCluster, pods_of
from benchmarks.measure import wait_bound
from benchmarks.processor_time import wait_quiet
from benchmarks.schedulers import start_podium
from benchmarks.workloads import WARM_UP, Workload
from tests.control_plane.locate import Binaries
from tests.control_plane.processes import ServerProcess

FUNCTIONS_SHOWN: Final = 25

_ROOTS = re.compile(r".*(?:/site-packages/|/podium/|/lib/python[\d.]+/)")

Code: TypeAlias = tuple[str, int, str]
"""File, line and name of a function, as the profiler has them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One function's part. `own` is without the functions that it calls."""

    function: str
    calls: int
    own_s: float
    total_s: float


def engine_profile(workload: Workload, nodes: int, attempts: int) -> list[Cost]:
    """The loop of `in_process`."""
    count = workload.pods_that_fit(nodes, attempts) + WARM_UP
    engine = FullCluster(nodes, workload.objects_before(nodes, count))
    pods = pods_of(workload, count)
    for pod in pods[:WARM_UP]:
        engine.attempt(pod)
    profile = cProfile.Profile(time.thread_time)
    with profile:
        for pod in pods[WARM_UP:]:
            engine.attempt(pod)
    return costs(pstats.Stats(profile))


def daemon_profile(workload: Workload, nodes: int, pods: int, binaries: Binaries) -> list[Cost]:
    """A backlog on a real API server, from when podium is in sync until it is quiet."""
    with TemporaryDirectory() as directory:
        output = Path(directory) / "daemon.prof"
        command = (sys.executable, "-m", "benchmarks.profiled_run", str(output))
        bind_backlog(command, workload, nodes, pods, binaries)
        return costs(pstats.Stats(str(output)))


def bind_backlog(
    command: Sequence[str],
    workload: Workload,
    nodes: int,
    pods: int,
    binaries: Binaries,
    end: Callable[[ServerProcess], None] = ServerProcess.stop,
) -> None:
    """Have podium bind a backlog on a real API server.

    Args:
        command: what to put before the options of `podium run`.
        end: called when podium is quiet.

    Raises:
        StallError: not all pods were bound.
    """
    with cluster(binaries, nodes, flags=workload.server_flags) as plane, Etcd(plane.etcd_address) as etcd:
        prepare(plane, etcd, workload, nodes, pods)
        with (
            workload.beside(plane, nodes) as fields,
            BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods,
        ):
            process = start_podium(plane, fields, workload.scheduler_flags, command).process
            try:
                wait_bound(bound_pods, process, pods)
                wait_quiet(process)
                end(process)
            finally:
                process.stop()


def costs(stats: pstats.Stats) -> list[Cost]:
    """Every function, the dearest first."""
    raw: Mapping[Code, tuple[int, int, float, float, object]] = stats.stats  # type: ignore[attr-defined]
    rows = [Cost(place(code), calls, own_s, total_s) for code, (_, calls, own_s, total_s, _) in raw.items()]
    return sorted(rows, key=lambda cost: -cost.own_s)


def place(code: Code) -> str:
    """Where a function is, without the directories that say nothing: `framework/cycle/search.py:104 search`."""
    file, line, name = code
    if file == "~":
        return name
    if root := _ROOTS.match(file):
        return f"{file[root.end() :]}:{line} {name}"
    return f"{Path(file).name}:{line} {name}"


def table(title: str, costs: list[Cost], pods: int) -> Table:
    """The dearest functions by CPU time. The profiler makes calls dearer than they are: read shares, not times.

    Compiled functions that do not tell the profiler, such as uvloop's, count as their caller's own time.
    """
    rich_table = Table(title=f"{title}: CPU µs per pod under the profiler", title_justify="left")
    for heading in ("own", "share", "with callees", "calls per pod"):
        rich_table.add_column(heading, justify="right")
    rich_table.add_column("function", overflow="fold")
    whole_s = sum(cost.own_s for cost in costs)
    for cost in costs[:FUNCTIONS_SHOWN]:
        own_us, total_us = cost.own_s / pods * 1e6, cost.total_s / pods * 1e6
        cells = (f"{own_us:.1f}", f"{cost.own_s / whole_s:.1%}", f"{total_us:.1f}", f"{cost.calls / pods:.1f}")
        rich_table.add_row(*cells, cost.function.replace("[", r"\["))
    rich_table.caption = f"{whole_s / pods * 1e6:,.0f} µs per pod in all"
    return rich_table
