"""How long a scheduler takes to get in sync with a large cluster that is at rest, what memory that needs, and its rate.

The rate is that of plain pods that are created once the scheduler is at rest.
"""

from __future__ import annotations

import compileall
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.table import Table

import podium
from benchmarks import pods, realistic
from benchmarks.api_server import turns
from benchmarks.bound_pods import BoundPods
from benchmarks.cluster import cluster, settle
from benchmarks.endpoints import LOOP_STALL, STALL_S, get, histogram, wait_ready
from benchmarks.etcd import Etcd
from benchmarks.etcd_stream import put_each
from benchmarks.measure import wait_bound
from benchmarks.medians import medians as medians_of
from benchmarks.processor_time import Reading, peak_rss_bytes, rss_bytes, wait_quiet
from benchmarks.schedulers import KUBE_SCHEDULER, PODIUM, STARTERS
from benchmarks.targets import Check, at_most
from tests.control_plane.locate import Binaries
from tests.control_plane.servers import ControlPlane, Scheduler

NODES: Final = 5_000
PODS: Final = 50_000
SIZES: Final = ((NODES, PODS), (15_000, 100_000))
"""The numbers of nodes and of running pods."""

CREATED: Final = 2_000
"""The number of pods that are created once a scheduler is at rest."""

_READY_S_MAX = 5.0
_MIB = 1 << 20
_CREATED_NAME = "created"


@dataclass(frozen=True, slots=True)
class StartUp:
    """One start, from the process's beginning until it says that it is ready, at rest after that, and at work.

    `pods_per_s` goes from the first pod's creation to the last one's binding, `cpu_ms_per_pod` until it is quiet.
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
    pods_per_s: float
    cpu_ms_per_pod: float
    loop_stalls: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the measurement."""

    nodes: int
    pods: int
    repeat: int
    schedulers: Sequence[str]


def sizes(node_counts: Sequence[int] | None, pod_count: int | None) -> Sequence[tuple[int, int]]:
    """Return the sizes to measure: those asked for, or `SIZES`."""
    if node_counts is None and pod_count is None:
        return SIZES
    return [(nodes, pod_count or PODS) for nodes in node_counts or [NODES]]


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
                f"with {start_result.peak_rss_mib:,.0f} MiB; {start_result.pods_per_s:,.0f} pods/s"
            )
            yield start_result


def start(plane: ControlPlane, plan: Plan, name: str) -> StartUp:
    """Raises: NotReadyError, StallError."""
    first_reading = Reading.take(None, plane)
    scheduler = STARTERS[name](plane, {}, ())
    process = scheduler.process
    try:
        wait_ready(scheduler)
        last_reading = Reading.take(process, plane)
        wait_quiet(process)
        status = Path(f"/proc/{process.pid}/status").read_text()
        pods_per_s, cpu_ms_per_pod = _schedule(plane, scheduler)
        page = get(scheduler, "/metrics")
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
        pods_per_s=pods_per_s,
        cpu_ms_per_pod=cpu_ms_per_pod,
        loop_stalls=histogram(page, LOOP_STALL).above(STALL_S),
    )


def _schedule(plane: ControlPlane, scheduler: Scheduler) -> tuple[float, float]:
    """Create pods and see them bound; leave none of them.

    Returns: pods per second, and CPU milliseconds of each. Raises: StallError.
    """
    process = scheduler.process
    with BoundPods(plane.url, plane.admin_token, plane.ssl_context()) as bound_pods:
        first_reading = Reading.take(process, plane)
        put_each(plane.etcd_address, (pods.pod(f"{_CREATED_NAME}-{number:06}", "app") for number in range(CREATED)))
        wait_bound(bound_pods, process, CREATED)
        last_reading = Reading.take(process, plane)
        wait_quiet(process)
    cpu_s = process.cpu_s() - first_reading.scheduler_s
    with Etcd(plane.etcd_address) as etcd:
        etcd.delete(f"/registry/pods/{pods.NAMESPACE}/{_CREATED_NAME}-")
    return CREATED / (last_reading.clock_s - first_reading.clock_s), cpu_s / CREATED * 1e3


def medians(starts: Sequence[StartUp]) -> list[StartUp]:
    """One for each size and scheduler; of the loop's stalls the worst, since there is to be none."""
    stalls: dict[tuple[int, int, str], int] = {}
    for start in starts:
        stalls[_subject(start)] = max(start.loop_stalls, stalls.get(_subject(start), 0))
    return [replace(figure, loop_stalls=stalls[_subject(figure)]) for figure in medians_of(starts, _subject)]


def _subject(start: StartUp) -> tuple[int, int, str]:
    return start.nodes, start.pods, start.scheduler


def checks(figures: Iterable[StartUp]) -> Iterator[Check]:
    """Those that can be judged by what was measured."""
    by_subject = {_subject(figure): figure for figure in figures}
    for figure in by_subject.values():
        if figure.scheduler == PODIUM:
            yield from _checks(figure, by_subject.get((figure.nodes, figure.pods, KUBE_SCHEDULER)))


def _checks(podium: StartUp, kube_scheduler: StartUp | None) -> Iterator[Check]:
    about = f"start with {podium.nodes:,} nodes and {podium.pods:,} pods: "
    if (podium.nodes, podium.pods) == (NODES, PODS):
        yield at_most(f"{about}ready", podium.until_ready_s, _READY_S_MAX, " s")
    yield at_most(f"{about}loop stalls over {STALL_S * 1e3:.0f} ms", podium.loop_stalls, 0)
    if kube_scheduler is not None:
        yield at_most(f"{about}peak memory", podium.peak_rss_mib / kube_scheduler.peak_rss_mib, 1.0, "×")


def table(figures: Sequence[StartUp]) -> Table:
    rich_table = Table(title="Start-up in a large cluster", title_justify="left")
    for heading in ("nodes", "running pods", "scheduler", *_MEASURED):
        rich_table.add_column(heading, justify="left" if heading == "scheduler" else "right")
    for figure in figures:
        until_ready = (figure.until_ready_s, figure.cpu_s, figure.servers_cores, figure.machine_cores)
        memory = (figure.peak_rss_mib, figure.rss_mib)
        rich_table.add_row(
            f"{figure.nodes:,}",
            f"{figure.pods:,}",
            figure.scheduler,
            *(f"{cell:.2f}" for cell in until_ready),
            *(f"{cell:,.0f}" for cell in (*memory, figure.pods_per_s)),
            f"{figure.cpu_ms_per_pod:.2f}",
        )
    return rich_table


_MEASURED: Final = (
    *("ready after s", "CPU s", "API server + etcd cores", "whole machine", "peak MiB", "MiB at rest"),
    *("pods/s then", "CPU ms per pod"),
)
