"""How long a scheduler takes to get in sync with a large cluster that is at rest, and what memory that needs."""

from __future__ import annotations

import compileall
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.table import Table

import podium
from benchmarks import realistic
from benchmarks.api_server import turns
from benchmarks.cluster import cluster, settle
from benchmarks.endpoints import LOOP_STALL, STALL_S, get, histogram, wait_ready
from benchmarks.etcd import Etcd
from benchmarks.medians import medians as medians_of
from benchmarks.processor_time import Reading, peak_rss_bytes, rss_bytes, wait_quiet
from benchmarks.schedulers import KUBE_SCHEDULER, PODIUM, STARTERS
from benchmarks.targets import Check, at_most
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane

NODES: Final = 5_000
PODS: Final = 50_000

_READY_S_MAX = 5.0
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class StartUp:
    """One start, from the process's beginning until it says that it is ready, and at rest after that.

    `loop_stalls` is how often podium's event loop was more than 50 ms late after the sync. `servers_cores` are API
    server and etcd, `machine_cores` everything that the machine did meanwhile.
    """

    scheduler: str
    nodes: int
    pods: int
    until_ready_s: float
    cpu_s: float
    servers_cores: float
    machine_cores: float
    peak_rss_mib: float
    rss_mib: float
    loop_stalls: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the measurement."""

    nodes: int
    pods: int
    repeat: int
    schedulers: Sequence[str]


def measure(plan: Plan, binaries: Binaries, tell: Callable[[str], None]) -> Iterator[StartUp]:
    """Every start of the plan, as it is done, on one control plane."""
    # As pip does where it installs podium: the environment may forbid Python to write what it has compiled.
    compileall.compile_dir(Path(podium.__file__).parent, quiet=2)
    tell(f"{plan.nodes:,} nodes and {plan.pods:,} pods: starting a control plane and filling it")
    with cluster(binaries, plan.nodes, realistic.node) as plane:
        with Etcd(plane.etcd_address) as etcd:
            etcd.put(realistic.running_pod(number, plan.nodes) for number in range(plan.pods))
        settle(plane)
        for number, scheduler in enumerate(turns(plan.schedulers, plan.repeat), start=1):
            start_result = start(plane, plan, scheduler)
            tell(
                f"start {number} of {plan.repeat * len(plan.schedulers)}: {scheduler} was ready after "
                f"{start_result.until_ready_s:.1f} s, {start_result.cpu_s:.1f} s of CPU, "
                f"with {start_result.peak_rss_mib:,.0f} MiB"
            )
            yield start_result


def start(plane: ControlPlane, plan: Plan, name: str) -> StartUp:
    """Raises: NotReadyError."""
    first_reading = Reading.take(None, plane)
    scheduler = STARTERS[name](plane, {}, ())
    process = scheduler.process
    try:
        wait_ready(scheduler)
        last_reading = Reading.take(process, plane)
        wait_quiet(process)
        page = get(scheduler, "/metrics")
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.stop()
    # The next one is not to start while the API server still tidies up after this one.
    settle(plane)
    cores = last_reading.cores_since(first_reading)
    return StartUp(
        scheduler=name,
        nodes=plan.nodes,
        pods=plan.pods,
        until_ready_s=last_reading.clock_s - first_reading.clock_s,
        cpu_s=last_reading.scheduler_s,
        servers_cores=cores.apiserver_cores + cores.etcd_cores,
        machine_cores=cores.machine_cores,
        peak_rss_mib=peak_rss_bytes(status) / _MIB,
        rss_mib=rss_bytes(status) / _MIB,
        loop_stalls=histogram(page, LOOP_STALL).above(STALL_S),
    )


def medians(starts: Sequence[StartUp]) -> list[StartUp]:
    """One for each scheduler; of the loop's stalls the worst, since there is to be none."""
    stalls: dict[str, int] = {}
    for start in starts:
        stalls[start.scheduler] = max(start.loop_stalls, stalls.get(start.scheduler, 0))
    middle = medians_of(starts, lambda start: start.scheduler)
    return [replace(figure, loop_stalls=stalls[figure.scheduler]) for figure in middle]


def checks(figures: Iterable[StartUp]) -> Iterator[Check]:
    """Those that can be judged by what was measured."""
    by_scheduler = {figure.scheduler: figure for figure in figures}
    podium, kube_scheduler = by_scheduler.get(PODIUM), by_scheduler.get(KUBE_SCHEDULER)
    if podium is None:
        return
    about = f"start with {podium.nodes:,} nodes and {podium.pods:,} pods: "
    if (podium.nodes, podium.pods) == (NODES, PODS):
        yield at_most(f"{about}ready", podium.until_ready_s, _READY_S_MAX, " s")
    yield at_most(f"{about}loop stalls over {STALL_S * 1e3:.0f} ms", podium.loop_stalls, 0)
    if kube_scheduler is not None:
        yield at_most(f"{about}peak memory", podium.peak_rss_mib / kube_scheduler.peak_rss_mib, 1.0, "×")


def table(figures: Sequence[StartUp]) -> Table:
    about = f"Start-up with {figures[0].nodes:,} nodes and {figures[0].pods:,} running pods"
    rich_table = Table(title=about, title_justify="left")
    rich_table.add_column("scheduler")
    for heading in ("ready after s", "CPU s", "API server + etcd cores", "whole machine", "peak MiB", "MiB at rest"):
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        cells = (figure.until_ready_s, figure.cpu_s, figure.servers_cores, figure.machine_cores)
        memory = (figure.peak_rss_mib, figure.rss_mib)
        rich_table.add_row(figure.scheduler, *(f"{cell:.2f}" for cell in cells), *(f"{cell:,.0f}" for cell in memory))
    return rich_table
