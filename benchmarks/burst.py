"""Thousands of pods created at once on the light API server: podium's own limit, with all default scores."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from benchmarks.endpoints import wait_ready
from benchmarks.light_server import LightServer, Statistics
from benchmarks.measure import Progress, StallError
from benchmarks.nodes import node
from benchmarks.processor_time import busy_s, noise, wait_quiet
from benchmarks.schedulers import start_podium
from benchmarks.targets import Check, at_least, at_most
from benchmarks.workloads import WORKLOADS, Workload
from tests.control_plane.processes import ServerProcess

NODES: Final = (1_000, 5_000)
PODS: Final = 5_000
WARM_UP: Final = 200
"""The number of pods bound before the others, so that connections are open and code has run."""
_PODS_PER_S_MIN: Final = 2_000.0
_P99_S_MAX: Final = 3.0
# Each look costs the server time: it sends all waits.
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst.

    Attributes:
        waits_s: of each pod from its creation until it was bound, as the server saw it.
        cpu_s: of podium from the creation until it is quiet: Events included.
        server_cores: of the light server until the last pod was bound.
        others_cores: of other processes meanwhile: noise.
    """

    workload: str
    nodes: int
    waits_s: list[float]
    cpu_s: float
    events: int
    conflicts: int
    server_cores: float
    others_cores: float

    @property
    def pods_per_s(self) -> float:
        """Until the last pod was bound."""
        return len(self.waits_s) / max(self.waits_s)


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of one size's bursts, each figure on its own."""

    workload: str
    nodes: int
    pods: int
    pods_per_s: float
    p50_s: float
    p99_s: float
    cpu_ms_per_pod: float
    events_per_pod: float
    conflicts: int
    server_cores: float
    others_cores: float


def measure(
    sizes: Iterable[int], workload: Workload, pods: int, repeat: int, binary: Path, tell: Callable[[str], None]
) -> Iterator[Burst]:
    """Yield each burst as it is done, of as many pods as fit. Raises: StallError, StartError."""
    for nodes in sizes:
        count = workload.pods_that_fit(nodes, pods + WARM_UP) - WARM_UP
        for _ in range(repeat):
            burst = _burst(nodes, workload, count, binary)
            rate, others_cores = burst.pods_per_s, burst.others_cores
            tell(f"{workload.name}, {nodes:,} nodes: {rate:,.0f} pods/s, other processes {others_cores:.2f} cores")
            yield burst


def _burst(nodes: int, workload: Workload, pods: int, binary: Path) -> Burst:
    with LightServer(binary) as server:
        server.create(map(node, range(nodes)))
        server.create(workload.objects_before(nodes, pods + WARM_UP))
        podium = start_podium(server)
        process = podium.process
        try:
            wait_ready(podium)
            server.create(map(workload.pod, range(pods, pods + WARM_UP)))
            wait_bound(server, [process], WARM_UP)
            wait_quiet(process)
            counts_before = server.statistics().counts
            first = Reading([process], server)
            server.create(map(workload.pod, range(pods)))
            wait_bound(server, [process], WARM_UP + pods)
            last = Reading([process], server)
            wait_quiet(process)
            cpu_s = process.cpu_s() - sum(first.podiums_s)
        finally:
            process.stop()
        counts, waits_s = server.statistics().counts, server.statistics().waits_s or []
    return Burst(
        workload=workload.name,
        nodes=nodes,
        waits_s=waits_s[WARM_UP:],
        cpu_s=cpu_s,
        events=counts.get("events", 0) - counts_before.get("events", 0),
        conflicts=counts.get("conflicts", 0),
        server_cores=last.server_cores_since(first),
        others_cores=last.others_cores_since(first),
    )


class Reading:
    """One moment: the clock, and the CPU time spent so far, of each podium by itself; all in seconds."""

    def __init__(self, podiums: Sequence[ServerProcess], server: LightServer) -> None:
        self.clock_s, self.own_s = time.monotonic(), time.process_time()
        self.podiums_s, self.server_s = [process.cpu_s() for process in podiums], server.process.cpu_s()
        self.machine_s = busy_s(Path("/proc/stat").read_text())

    def server_cores_since(self, earlier: Reading) -> float:
        """Return the cores that the light server has used since an earlier reading."""
        return (self.server_s - earlier.server_s) / (self.clock_s - earlier.clock_s)

    def others_cores_since(self, earlier: Reading) -> float:
        """Return the cores that other processes have used since an earlier reading."""
        busy, busy_before = (
            reading.machine_s - reading.own_s - reading.server_s - sum(reading.podiums_s) for reading in (self, earlier)
        )
        return max(0.0, (busy - busy_before) / (self.clock_s - earlier.clock_s))


def wait_bound(server: LightServer, processes: Sequence[ServerProcess], count: int) -> None:
    """Poll until so many pods have been bound. Raises: StallError."""
    _wait(server, processes, count, "bound", lambda statistics: len(statistics.waits_s or []))


def wait_rejected(server: LightServer, processes: Sequence[ServerProcess], count: int) -> None:
    """Poll until so many pods have a status that says why they fit nowhere. Raises: StallError."""
    _wait(server, processes, count, "rejected", lambda statistics: statistics.counts.get("patches", 0))


def _wait(
    server: LightServer,
    processes: Sequence[ServerProcess],
    count: int,
    outcome: str,
    count_of: Callable[[Statistics], int],
) -> None:
    progress = Progress()
    while (pod_count := count_of(server.statistics())) < count:
        cpu_s = sum(process.cpu_s() for process in processes if process.is_running)
        dead = [process for process in processes if not process.is_running]
        if dead or progress.is_stalled(pod_count, cpu_s, time.monotonic()):
            tail = (dead or processes)[0].log_tail()
            raise StallError(f"podium has {outcome} {pod_count} of {count} pods and no more:\n{tail}")
        time.sleep(_POLL_S)


def medians(bursts: Iterable[Burst]) -> list[Figures]:
    """Return one row for each workload and size, in the order of their first bursts."""
    groups: dict[tuple[str, int, int], list[Burst]] = {}
    for burst in bursts:
        groups.setdefault((burst.workload, burst.nodes, len(burst.waits_s)), []).append(burst)
    return [_figures(*size, group) for size, group in groups.items()]


def _figures(workload: str, nodes: int, pods: int, bursts: Sequence[Burst]) -> Figures:
    def middle(figure: Callable[[Burst], float]) -> float:
        return statistics.median(map(figure, bursts))

    return Figures(
        workload=workload,
        nodes=nodes,
        pods=pods,
        pods_per_s=middle(lambda burst: burst.pods_per_s),
        p50_s=middle(lambda burst: statistics.median(burst.waits_s)),
        p99_s=middle(lambda burst: statistics.quantiles(burst.waits_s, n=100)[98]),
        cpu_ms_per_pod=middle(lambda burst: burst.cpu_s / pods * 1e3),
        events_per_pod=middle(lambda burst: burst.events / pods),
        conflicts=max(burst.conflicts for burst in bursts),
        server_cores=middle(lambda burst: burst.server_cores),
        others_cores=middle(lambda burst: burst.others_cores),
    )


def checks(figures: Iterable[Figures]) -> Iterator[Check]:
    """Check the rate and the longest waits of bursts of plain pods."""
    for figure in figures:
        about = f"{figure.pods:,} {figure.workload} pods at once on {figure.nodes:,} nodes"
        yield at_least(f"{about}: rate", figure.pods_per_s, _PODS_PER_S_MIN, " pods/s")
        yield at_most(f"{about}: p99 from created to bound", figure.p99_s, _P99_S_MAX, " s")


def notes(figures: Iterable[Figures]) -> list[str]:
    """Return sentences about other work on the machine."""
    possible_notes = (noise(f"{figure.workload}, {figure.nodes:,} nodes", figure.others_cores) for figure in figures)
    return [note for note in possible_notes if note is not None]


def table(figures: Iterable[Figures]) -> Table:
    rich_table = Table(title="bursts on the light API server, all default scores", title_justify="left")
    headings = (
        "nodes",
        "pods at once",
        "pods/s",
        "p50 s",
        "p99 s",
        "CPU ms per pod",
        "Events per pod",
        "light server cores",
    )
    rich_table.add_column("workload")
    for heading in headings:
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        rich_table.add_row(
            figure.workload,
            f"{figure.nodes:,}",
            f"{figure.pods:,}",
            f"{figure.pods_per_s:,.0f}",
            f"{figure.p50_s:.2f}",
            f"{figure.p99_s:.2f}",
            f"{figure.cpu_ms_per_pod:.3f}",
            f"{figure.events_per_pod:.2f}",
            f"{figure.server_cores:.2f}",
        )
    return rich_table


def workload(names: Sequence[str] | None) -> Workload:
    """Return the workload that was asked for, plain pods by default."""
    return WORKLOADS[names[0] if names else "plain"]
