"""Plans of nodes to buy: podium and Karpenter's own simulated scheduling in turn, on the same files.

Each plan is made in a fresh process. Times are those of planning alone: the objects are read before.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from benchmarks.api_server import turns
from benchmarks.measure import StallError
from benchmarks.medians import medians as medians_of
from benchmarks.targets import Check, at_most
from benchmarks.waiting_cluster import INSTANCE_TYPES, write_case

PODIUM: Final = "podium"
KARPENTER: Final = "karpenter"

_CPU_MAX = 0.5
_MEMORY_MAX = 1.0
_GROWTH_MAX = 1.3
_LARGEST_S_MAX = 20.0
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """What to plan. `is_compared` is whether Karpenter is asked, too."""

    name: str
    pods: int
    pools: int = 1
    nodes: int = 0
    node_cpu: int = 16
    is_compared: bool = True


QUESTIONS: Final = (
    Question("diverse", 2_000),
    Question("four pools, 50 nodes", 2_000, pools=4, nodes=50),
    Question("500 nodes", 2_000, nodes=500),
    Question("diverse", 10_000),
    Question("diverse", 20_000, is_compared=False),
)


@dataclass(frozen=True, slots=True)
class Planned:
    """One plan. Units: dollars per hour, seconds; `cpu_s` is that of all threads."""

    planner: str
    name: str
    pods: int
    claims: int
    price: float
    on_nodes: int
    errors: int
    wall_s: float
    cpu_s: float
    peak_rss_mib: float


def measure(
    questions: Iterable[Question], repeat: int, karpenter: Path, tell: Callable[[str], None]
) -> Iterator[Planned]:
    """Every plan, as it is made. Raises: StallError."""
    commands = {PODIUM: [sys.executable, "-m", "benchmarks.planner"], KARPENTER: [str(karpenter)]}
    with tempfile.TemporaryDirectory(prefix="podium-plans-") as directory:
        for question in questions:
            case = Path(directory) / "case.jsonl"
            write_case(case, question.pods, question.pools, question.nodes, question.node_cpu)
            for planner in turns(list(commands) if question.is_compared else [PODIUM], repeat):
                plan = plan_of(planner, question, _run([*commands[planner], str(case)]))
                tell(f"{planner}, {plan.name}, {plan.pods:,} pods: {plan.cpu_s:.2f} s of CPU")
                yield plan


def _run(command: Sequence[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise StallError(f"{' '.join(command)} failed:\n{result.stderr}")
    return result.stdout


def plan_of(planner: str, question: Question, printed: str) -> Planned:
    """What a planner printed. Raises: StallError, where pods are missing from it."""
    answer = json.loads(printed)
    pods = answer["on_claims"] + answer["on_nodes"] + answer["errors"]
    if pods != question.pods:
        raise StallError(f"{planner} says where {pods:,} pods go, of {question.pods:,}: {printed}")
    return Planned(
        planner=planner,
        name=question.name,
        pods=question.pods,
        peak_rss_mib=answer["peak_rss_bytes"] / _MIB,
        **{name: answer[name] for name in ("claims", "price", "on_nodes", "errors", "wall_s", "cpu_s")},
    )


def medians(plans: Iterable[Planned]) -> list[Planned]:
    """One for each question and planner."""
    return medians_of(plans, lambda plan: (plan.name, plan.pods, plan.planner))


def _pairs(figures: Iterable[Planned]) -> Iterator[tuple[Planned, Planned]]:
    """The answers of podium and Karpenter to the same question."""
    plans_by_planner: dict[tuple[str, int], dict[str, Planned]] = {}
    for figure in figures:
        plans_by_planner.setdefault((figure.name, figure.pods), {})[figure.planner] = figure
    for pair in plans_by_planner.values():
        if pair.keys() == {PODIUM, KARPENTER}:
            yield pair[PODIUM], pair[KARPENTER]


def checks(figures: Sequence[Planned]) -> Iterator[Check]:
    """What podium's plans have to reach."""
    for podium, karpenter in _pairs(figures):
        about = f"plans, {podium.name}, {podium.pods:,} pods: "
        yield at_most(f"{about}CPU", podium.cpu_s / karpenter.cpu_s, _CPU_MAX, "×")
        yield at_most(f"{about}memory", podium.peak_rss_mib / karpenter.peak_rss_mib, _MEMORY_MAX, "×")
    alone = {(figure.name, figure.pods): figure for figure in figures if figure.planner == PODIUM}
    small_plan, large_plan = alone.get(("diverse", 2_000)), alone.get(("diverse", 20_000))
    if small_plan is not None and large_plan is not None:
        growth = large_plan.cpu_s / small_plan.cpu_s / (large_plan.pods / small_plan.pods)
        yield at_most("plans, from 2,000 to 20,000 pods: growth of the CPU for each pod", growth, _GROWTH_MAX, "×")
        yield at_most("plans, 20,000 pods", large_plan.wall_s, _LARGEST_S_MAX, " s")


def notes(plans: Sequence[Planned]) -> Iterator[str]:
    """Where the two plan otherwise: Karpenter walks maps in a random order, so its own plans differ from run to run."""
    for podium, _ in _pairs(plans):
        runs = [plan for plan in plans if (plan.planner, plan.name, plan.pods) == (KARPENTER, podium.name, podium.pods)]
        for about, ours, theirs in (
            ("nodes to buy", podium.claims, [run.claims for run in runs]),
            ("onto nodes", podium.on_nodes, [run.on_nodes for run in runs]),
            ("left", podium.errors, [run.errors for run in runs]),
            ("dollars per hour", round(podium.price, 2), [round(run.price, 2) for run in runs]),
        ):
            if {ours} != set(theirs):
                range_text = f"{min(theirs):,} to {max(theirs):,}" if len(set(theirs)) > 1 else f"{theirs[0]:,}"
                yield f"{podium.name}, {podium.pods:,} pods: {about}: podium {ours:,}, Karpenter {range_text}"


def table(figures: Sequence[Planned]) -> Table:
    """What people read: each question's rows, and their ratio under them."""
    ratios = {(karpenter.name, karpenter.pods): (podium, karpenter) for podium, karpenter in _pairs(figures)}
    rich_table = Table(title=f"Plans of nodes to buy, {INSTANCE_TYPES} instance types", title_justify="left")
    rich_table.add_column("pods", justify="right")
    rich_table.add_column("")
    rich_table.add_column("planner")
    for heading in ("nodes to buy", "$ per hour", "onto nodes", "left", "s", "CPU s", "us of CPU per pod", "peak MiB"):
        rich_table.add_column(heading, justify="right")
    for index, figure in enumerate(figures):
        rich_table.add_row(f"{figure.pods:,}", figure.name, figure.planner, *_cells(figure))
        key = (figure.name, figure.pods)
        is_last = index + 1 == len(figures) or (figures[index + 1].name, figures[index + 1].pods) != key
        if is_last and key in ratios:
            rich_table.add_row("", "", "ratio", *_ratio_cells(*ratios[key]), style="bold")
        if is_last:
            rich_table.add_section()
    return rich_table


def _cells(figure: Planned) -> tuple[str, ...]:
    return (
        f"{figure.claims:,.0f}",
        f"{figure.price:,.2f}",
        f"{figure.on_nodes:,.0f}",
        f"{figure.errors:,.0f}",
        f"{figure.wall_s:.2f}",
        f"{figure.cpu_s:.2f}",
        f"{figure.cpu_s / figure.pods * 1e6:,.0f}",
        f"{figure.peak_rss_mib:,.0f}",
    )


def _ratio_cells(podium: Planned, karpenter: Planned) -> tuple[str, ...]:
    return (
        *([""] * 4),
        f"{podium.wall_s / karpenter.wall_s:.2f}×",
        f"{podium.cpu_s / karpenter.cpu_s:.2f}×",
        "",
        f"{podium.peak_rss_mib / karpenter.peak_rss_mib:.2f}×",
    )
