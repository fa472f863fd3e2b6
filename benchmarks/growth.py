"""How the cost of an attempt grows with the cluster: with the pods that run in it, and with its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rich.table import Table

from benchmarks.in_process import Rate, Size, measure_in_turn
from benchmarks.targets import Check, at_most
from benchmarks.workloads import Workload

NODES: Final = 5_000
RUNNING: Final = (0, 10_000, 50_000, 100_000)
MORE_NODES: Final = (1_000, 5_000, 15_000)
ATTEMPTS: Final = 500

_TURNS: Final = 5
"""In so many parts each size's attempts are made, in turn with those of the others."""

_BY_PODS_MAX = 1.3
_BY_NODES_MAX = 2.5


def measure_all(
    workloads: Sequence[Workload], attempts: int, repeat: int, tell: Callable[[str], None]
) -> Iterator[list[Rate]]:
    """The rates of each workload: first those with more and more running pods, then those with more and more nodes."""
    sizes = [
        *(Size(NODES, running) for running in RUNNING),
        *(Size(nodes, RUNNING[1]) for nodes in MORE_NODES if nodes != NODES),
    ]
    for workload in workloads:
        rates = measure_in_turn([(workload, size) for size in sizes], attempts // _TURNS, repeat * _TURNS)
        for rate in rates:
            size = f"{rate.nodes:,} nodes, {rate.running:,} pods"
            tell(f"{rate.workload}, {size}: {rate.us_per_attempt:,.0f} µs per attempt")
        yield rates


def by_pods(rates: Sequence[Rate]) -> Mapping[int, Rate]:
    """One workload's rates by how many pods run."""
    return {rate.running: rate for rate in rates if rate.nodes == NODES}


def by_nodes(rates: Sequence[Rate]) -> Mapping[int, Rate]:
    """One workload's rates by how many nodes there are."""
    return {rate.nodes: rate for rate in rates if rate.running == RUNNING[1]}


def checks(workloads: Sequence[Sequence[Rate]]) -> Iterator[Check]:
    """Two for each workload."""
    for rates in workloads:
        name, pods, nodes = rates[0].workload, by_pods(rates), by_nodes(rates)
        growth = pods[RUNNING[-1]].us_per_attempt / pods[RUNNING[1]].us_per_attempt
        yield at_most(f"{name}: {RUNNING[-1]:,} running pods against {RUNNING[1]:,}", growth, _BY_PODS_MAX, "×")
        growth = nodes[MORE_NODES[-1]].us_per_attempt / nodes[NODES].us_per_attempt
        yield at_most(f"{name}: {MORE_NODES[-1]:,} nodes against {NODES:,}", growth, _BY_NODES_MAX, "×")


def table(workloads: Sequence[Sequence[Rate]]) -> Table:
    """What people read."""
    rich_table = Table(title="CPU µs per attempt of podium's engine", title_justify="left")
    rich_table.add_column("workload")
    for running in RUNNING:
        rich_table.add_column(f"{running:,}\npods", justify="right")
    for nodes in MORE_NODES:
        rich_table.add_column(f"{nodes:,}\nnodes", justify="right")
    for rates in workloads:
        costs = (*by_pods(rates).values(), *(by_nodes(rates)[nodes] for nodes in MORE_NODES))
        rich_table.add_row(rates[0].workload, *(f"{cost.us_per_attempt:,.0f}" for cost in costs))
    rich_table.caption = f"running pods with {NODES:,} nodes; nodes with {RUNNING[1]:,} running pods"
    return rich_table
