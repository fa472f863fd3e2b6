"""What policies add to an attempt: the engine alone, without and with quotas, NUMA nodes and loads, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks.in_process import Rate, Size, measure_in_turn
from benchmarks.targets import Check, at_most
from benchmarks.workloads import WORKLOADS

NODES: Final = 5_000
ATTEMPTS: Final = 300
ROUNDS: Final = 15
_COST_MAX: Final = 1.5


def measure(nodes: int = NODES, attempts: int = ATTEMPTS, rounds: int = ROUNDS) -> list[Rate]:
    """The rates without and with the policies."""
    return measure_in_turn([(WORKLOADS[name], Size(nodes)) for name in ("plain", "policies")], attempts, rounds)


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Check that the policies cost at most half an attempt."""
    plain, policies = rates
    ratio = policies.us_per_attempt / plain.us_per_attempt
    return [at_most(f"policies, {plain.nodes:,} nodes, against a plain attempt", ratio, _COST_MAX, "×")]


def table(rates: Sequence[Rate]) -> Table:
    rich_table = Table(title=f"an attempt, engine alone, {rates[0].nodes:,} nodes", title_justify="left")
    rich_table.add_column("workload")
    rich_table.add_column("µs per attempt", justify="right")
    for rate in rates:
        rich_table.add_row(rate.workload, f"{rate.us_per_attempt:,.0f}")
    return rich_table
