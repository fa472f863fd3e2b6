"""Plots of what was measured, as SVG. The same figures give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.growth import by_nodes, by_pods
from benchmarks.in_process import Rate
from benchmarks.report import Figures
from benchmarks.schedulers import KUBE_SCHEDULER, PODIUM

_COLOURS: Final = {PODIUM: "#1f6feb", KUBE_SCHEDULER: "#8c959f"}
_BAR_HEIGHT = 0.38
_INCHES_PER_PAIR = 0.55
_WIDTH_INCHES = 8.5

mpl.rcParams["svg.hashsalt"] = "podium"


def bars(figures: Sequence[Figures], value: Callable[[Figures], float], title: str, path: Path) -> None:
    """A pair of bars for each workload and size, with the ratio podium : kube-scheduler behind them."""
    pairs: dict[tuple[str, int], dict[str, float]] = {}
    for row in figures:
        pairs.setdefault((row.workload, row.nodes), {})[row.scheduler] = value(row)
    figure = Figure(figsize=(_WIDTH_INCHES, 1 + _INCHES_PER_PAIR * len(pairs)), layout="constrained")
    axes = figure.add_subplot()
    for offset, scheduler in ((-_BAR_HEIGHT / 2, PODIUM), (_BAR_HEIGHT / 2, KUBE_SCHEDULER)):
        places = [index + offset for index, pair in enumerate(pairs.values()) if scheduler in pair]
        widths = [pair[scheduler] for pair in pairs.values() if scheduler in pair]
        axes.barh(places, widths, _BAR_HEIGHT, label=scheduler, color=_COLOURS[scheduler])
    for index, pair in enumerate(pairs.values()):
        if len(pair) == len(_COLOURS):
            ratio = pair[PODIUM] / pair[KUBE_SCHEDULER]
            axes.text(max(pair.values()), index, f"  {ratio:.2f}×", va="center", fontweight="bold")
    axes.set_yticks(range(len(pairs)), [f"{workload}, {nodes:,} nodes" for workload, nodes in pairs])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_title(title, loc="left")
    axes.legend(loc="lower right")
    _save(figure, path)


def growth(workloads: Sequence[Sequence[Rate]], path: Path) -> None:
    """The cost of an attempt by running pods, and by nodes."""
    figure = Figure(figsize=(_WIDTH_INCHES * 1.2, 5), layout="constrained")
    pod_axes, right = figure.subplots(1, 2, sharey=True)
    for axes in (pod_axes, right):
        axes.set_prop_cycle(color=mpl.colormaps["tab20"].resampled(20)(range(20)))
    for rates in workloads:
        _curve(pod_axes, rates[0].workload, by_pods(rates))
        _curve(right, rates[0].workload, by_nodes(rates))
    pod_axes.set_xlabel("running pods")
    right.set_xlabel("nodes")
    pod_axes.set_ylabel("CPU µs per attempt")
    pod_axes.set_ylim(bottom=0)
    right.legend(loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path)


def _curve(axes: Axes, name: str, rates: Mapping[int, Rate]) -> None:
    sizes = sorted(rates)
    axes.plot(sizes, [rates[size].us_per_attempt for size in sizes], marker="o", label=name)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
