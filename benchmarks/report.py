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
from benchmarks.schedulers import KUBE_SCHEDULER, PODIUM

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
    """podium : kube-scheduler. More is better for pods/s, less for the others."""

    workload: str
    nodes: int
    pods_per_s: float
    cpu_ms_per_pod: float
    cpu_ms_per_pod_with_tail: float
    peak_rss_mib: float


def medians(runs: Iterable[Run]) -> list[Figures]:
    """One row for each workload, size and scheduler, in the order of their first runs."""
    groups: dict[tuple[str, int, str], list[Run]] = {}
    for each in runs:
        groups.setdefault((each.workload, each.nodes, each.scheduler), []).append(each)
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
        loop_stalls=max(each.loop_stalls for each in runs),
        peak_rss_mib=middle(lambda each: each.peak_rss_bytes) / MIB,
        events_per_pod=middle(lambda each: each.events / each.pods),
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
    for each in figures:
        by_scheduler.setdefault((each.workload, each.nodes), {})[each.scheduler] = each
    return [
        Ratios(
            workload=workload,
            nodes=nodes,
            pods_per_s=podium.pods_per_s / other.pods_per_s,
            cpu_ms_per_pod=podium.cpu_ms_per_pod / other.cpu_ms_per_pod,
            cpu_ms_per_pod_with_tail=podium.cpu_ms_per_pod_with_tail / other.cpu_ms_per_pod_with_tail,
            peak_rss_mib=podium.peak_rss_mib / other.peak_rss_mib,
        )
        for (workload, nodes), pair in by_scheduler.items()
        if (podium := pair.get(PODIUM)) and (other := pair.get(KUBE_SCHEDULER))
    ]


def table(figures: Sequence[Figures], cores: int) -> Table:
    """What people read: each size's rows, and their ratio under them."""
    compared = {(each.workload, each.nodes): each for each in ratios(figures)}
    shown = Table(title="podium and kube-scheduler on the same API server", title_justify="left")
    shown.add_column("workload", overflow="fold")
    shown.add_column("nodes", justify="right")
    shown.add_column("scheduler")
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
        shown.add_column(heading, justify="right", no_wrap=False)
    for index, each in enumerate(figures):
        key = (each.workload, each.nodes)
        shown.add_row(each.workload, f"{each.nodes:,}", each.scheduler, *_cells(each))
        is_last = index + 1 == len(figures) or (figures[index + 1].workload, figures[index + 1].nodes) != key
        if is_last and key in compared:
            shown.add_row("", "", "ratio", *_ratio_cells(compared[key]), style="bold")
        if is_last:
            shown.add_section()
    return shown


def _cells(each: Figures) -> tuple[str, ...]:
    return (
        f"{each.pods:,}",
        f"{each.pods_per_s:,.0f}",
        f"{each.cpu_ms_per_pod:.2f}",
        f"{each.cpu_ms_per_pod_with_tail:.2f}",
        f"{each.attempt_p50_ms:.2f}",
        f"{each.attempt_p99_ms:.2f}",
        f"{each.algorithm_p99_ms:.2f}",
        f"{each.binding_p99_ms:.1f}",
        f"{each.peak_rss_mib:,.0f}",
        f"{each.until_ready_s:.1f}",
        f"{each.events_per_pod:.2f}",
        f"{each.servers_cores:.2f}",
        f"{each.machine_cores:.2f}",
    )


def _ratio_cells(each: Ratios) -> tuple[str, ...]:
    return (
        "",
        f"{each.pods_per_s:.2f}×",
        f"{each.cpu_ms_per_pod:.2f}×",
        f"{each.cpu_ms_per_pod_with_tail:.2f}×",
        "",
        "",
        "",
        "",
        f"{each.peak_rss_mib:.2f}×",
    )


def notes(figures: Iterable[Figures]) -> list[str]:
    """What makes a comparison doubtful, a sentence each: Events that were left out, and other work on the machine."""
    found = []
    for each in figures:
        where = f"{each.workload}, {each.nodes:,} nodes, {each.scheduler}"
        if each.events_per_pod < _EVENTS_PER_POD_MIN:
            found.append(
                f"{where}: wrote {each.events_per_pod:.2f} Events per pod; "
                "those left out were saved at the API server too, which flatters its figures"
            )
        if note := noise(where, each.others_cores):
            found.append(note)
    return found


def as_json(runs: Sequence[Run], machine: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, and what the table shows of it."""
    figures = medians(runs)
    return {
        "machine": machine,
        "ratios": [asdict(each) for each in ratios(figures)],
        "medians": [asdict(each) for each in figures],
        "notes": notes(figures),
        "runs": [asdict(each) for each in runs],
    }
