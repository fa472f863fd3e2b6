"""Medians of repeats, ratios podium : kube-scheduler, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from statistics import median
from typing import Any, Final

from rich.table import Table

from benchmarks.measure import Run
from benchmarks.processor_time import noise
from benchmarks.schedulers import KUBE_SCHEDULER, PEER, PODIUM

MIB: Final = 1 << 20

_EVENTS_PER_POD_MIN = 0.98


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of one scheduler's runs of one workload at one size, each figure on its own."""

    workload: str
    nodes: int
    scheduler: str
    runs: int
    pods: int
    pods_per_s: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_with_tail: float
    attempt_p50_ms: float
    attempt_p99_ms: float
    algorithm_p99_ms: float
    binding_p99_ms: float
    loop_stalls: int
    peak_rss_mib: float
    until_ready_s: float
    events_per_pod: float
    servers_cores: float
    machine_cores: float
    others_cores: float


@dataclass(frozen=True, slots=True)
class Ratios:
    """podium : the other scheduler. More is better for pods/s, less for the others."""

    workload: str
    nodes: int
    pods_per_s: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_with_tail: float
    peak_rss_mib: float


def medians(runs: Iterable[Run]) -> list[Figures]:
    """One row for each workload, size and scheduler, in the order of their first runs."""
    groups: dict[tuple[str, int, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.workload, run.nodes, run.scheduler), []).append(run)
    return [_figures(*key, group) for key, group in groups.items()]


def _figures(workload: str, nodes: int, scheduler: str, runs: Sequence[Run]) -> Figures:
    def middle(figure: Callable[[Run], float]) -> float:
        return median(map(figure, runs))

    return Figures(
        workload=workload,
        nodes=nodes,
        scheduler=scheduler,
        runs=len(runs),
        pods=runs[0].pods,
        # The worst, since there is to be none.
        loop_stalls=max(run.loop_stalls for run in runs),
        peak_rss_mib=middle(lambda run: run.peak_rss_bytes) / MIB,
        events_per_pod=middle(lambda run: run.events / run.pods),
        **{name: middle(attrgetter(name)) for name in _AS_THEY_ARE},
    )


_AS_THEY_ARE: Final = (
    "pods_per_s",
    "cpu_ms_per_pod",
    "cpu_ms_per_pod_with_tail",
    "attempt_p50_ms",
    "attempt_p99_ms",
    "algorithm_p99_ms",
    "binding_p99_ms",
    "until_ready_s",
    "servers_cores",
    "machine_cores",
    "others_cores",
)


def ratios(figures: Iterable[Figures]) -> list[Ratios]:
    """One row for each workload and size that both schedulers have run."""
    by_scheduler: dict[tuple[str, int], dict[str, Figures]] = {}
    for figure in figures:
        by_scheduler.setdefault((figure.workload, figure.nodes), {})[figure.scheduler] = figure
    return [
        Ratios(
            workload=workload,
            nodes=nodes,
            pods_per_s=podium.pods_per_s / peer.pods_per_s,
            cpu_ms_per_pod=podium.cpu_ms_per_pod / peer.cpu_ms_per_pod,
            cpu_ms_per_pod_with_tail=podium.cpu_ms_per_pod_with_tail / peer.cpu_ms_per_pod_with_tail,
            peak_rss_mib=podium.peak_rss_mib / peer.peak_rss_mib,
        )
        for (workload, nodes), pair in by_scheduler.items()
        if (podium := pair.get(PODIUM)) and (peer := pair.get(KUBE_SCHEDULER) or pair.get(PEER))
    ]


def table(figures: Sequence[Figures], cores: int) -> Table:
    """Return the table: each size's rows, and their ratio under them."""
    ratio_by_size = {(ratio.workload, ratio.nodes): ratio for ratio in ratios(figures)}
    rich_table = Table(title="podium and kube-scheduler on the same API server", title_justify="left")
    rich_table.add_column("workload", overflow="fold")
    rich_table.add_column("nodes", justify="right")
    rich_table.add_column("scheduler")
    for heading in (
        "pods",
        "pods/s",
        "CPU ms\nper pod",
        "until\nquiet",
        "attempt ms\np50",
        "\np99",
        "decision\np99 ms",
        "server's\nbind p99",
        "peak\nMiB",
        "ready\nafter s",
        "Events\nper pod",
        f"API server\n+ etcd\nof {cores} cores",
        "whole\nmachine",
    ):
        rich_table.add_column(heading, justify="right", no_wrap=False)
    for index, figure in enumerate(figures):
        key = (figure.workload, figure.nodes)
        rich_table.add_row(figure.workload, f"{figure.nodes:,}", figure.scheduler, *_cells(figure))
        is_last = index + 1 == len(figures) or (figures[index + 1].workload, figures[index + 1].nodes) != key
        if is_last and key in ratio_by_size:
            rich_table.add_row("", "", "ratio", *_ratio_cells(ratio_by_size[key]), style="bold")
        if is_last:
            rich_table.add_section()
    return rich_table


def _cells(figure: Figures) -> tuple[str, ...]:
    return (
        f"{figure.pods:,}",
        f"{figure.pods_per_s:,.0f}",
        f"{figure.cpu_ms_per_pod:.2f}",
        f"{figure.cpu_ms_per_pod_with_tail:.2f}",
        f"{figure.attempt_p50_ms:.2f}",
        f"{figure.attempt_p99_ms:.2f}",
        f"{figure.algorithm_p99_ms:.2f}",
        f"{figure.binding_p99_ms:.1f}",
        f"{figure.peak_rss_mib:,.0f}",
        f"{figure.until_ready_s:.1f}",
        f"{figure.events_per_pod:.2f}",
        f"{figure.servers_cores:.2f}",
        f"{figure.machine_cores:.2f}",
    )


def _ratio_cells(ratio: Ratios) -> tuple[str, ...]:
    return (
        "",
        f"{ratio.pods_per_s:.2f}×",
        f"{ratio.cpu_ms_per_pod:.2f}×",
        f"{ratio.cpu_ms_per_pod_with_tail:.2f}×",
        "",
        "",
        "",
        "",
        f"{ratio.peak_rss_mib:.2f}×",
    )


def notes(figures: Iterable[Figures]) -> list[str]:
    """Return sentences about what makes a comparison doubtful: missing Events, and other work on the machine."""
    lines = []
    for figure in figures:
        where = f"{figure.workload}, {figure.nodes:,} nodes, {figure.scheduler}"
        if figure.events_per_pod < _EVENTS_PER_POD_MIN:
            lines.append(
                f"{where}: wrote {figure.events_per_pod:.2f} Events per pod; "
                "those left out were saved at the API server too, which flatters its figures"
            )
        if note := noise(where, figure.others_cores):
            lines.append(note)
    return lines


def as_json(runs: Sequence[Run], machine: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, and what the table shows of it."""
    figures = medians(runs)
    return {
        "machine": machine,
        "ratios": [asdict(ratio) for ratio in ratios(figures)],
        "medians": [asdict(figure) for figure in figures],
        "notes": notes(figures),
        "runs": [asdict(run) for run in runs],
    }
