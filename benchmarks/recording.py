"""What podium takes for a pod with no recorder, with its flight recorder and while it records, in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.table import Table

from benchmarks.api_server import Plan, Size
from benchmarks.report import Figures
from benchmarks.schedulers import PODIUM, Start, start_podium, start_recording, start_without_recorder
from benchmarks.targets import Check, at_most

NODES: Final = 5_000
WITHOUT: Final = "podium --recorder-memory 0"
RECORDING: Final = "podium --record"
MODES: Final[Mapping[str, Start]] = {
    WITHOUT: start_without_recorder,
    PODIUM: start_podium,
    RECORDING: start_recording,
}
RATIO_MAX: Final[Mapping[str, float]] = {PODIUM: 1.01, RECORDING: 1.05}
"""The flight recorder is on unless it is turned off; who records has asked for it."""


def plan(nodes: int, pods: int | None, repeat: int) -> Plan:
    """Plain pods in each mode."""
    return Plan([Size("plain", nodes, pods)], repeat, MODES)


def ratios(figures: Sequence[Figures]) -> Mapping[str, float]:
    """The CPU per pod, Events included, of each mode to that without a recorder."""
    cpu_ms = {figure.scheduler: figure.cpu_ms_per_pod_with_tail for figure in figures}
    return {name: cpu_ms[name] / cpu_ms[WITHOUT] for name in cpu_ms} if WITHOUT in cpu_ms else {}


def checks(figures: Sequence[Figures]) -> Iterator[Check]:
    """Check that recorders cost hardly anything."""
    for name, ratio in ratios(figures).items():
        if name != WITHOUT:
            yield at_most(f"{name}, CPU per pod to that without a recorder", ratio, RATIO_MAX[name], "×")


def table(figures: Sequence[Figures]) -> Table:
    rich_table, ratio_by_scheduler = (
        Table(title="recorders, on a real API server", title_justify="left"),
        ratios(figures),
    )
    rich_table.add_column("command", overflow="fold")
    for heading in ("nodes", "pods", "pods/s", "CPU ms per pod", "ratio", "MiB at most"):
        rich_table.add_column(heading, justify="right")
    for figure in figures:
        cells = (
            f"{figure.nodes:,} {figure.pods:,} {figure.pods_per_s:,.0f} {figure.cpu_ms_per_pod_with_tail:.3f}".split()
        )
        ratio = f"{ratio_by_scheduler[figure.scheduler]:.3f}" if ratio_by_scheduler else ""
        rich_table.add_row(figure.scheduler, *cells, ratio, f"{figure.peak_rss_mib:,.0f}")
    return rich_table
