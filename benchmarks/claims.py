"""How the cost of an attempt at a pod with a claim grows with the claims that are allocated: the engine alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.table import Table

from benchmarks import devices
from benchmarks.in_process import Rate, Size, measure_in_turn
from benchmarks.nodes import Json
from benchmarks.targets import Check, at_most
from benchmarks.workloads import WORKLOADS, Workload

NODES: Final = 1_000
ALLOCATED: Final = (0, 10_000, 100_000)
ATTEMPTS: Final = 100
ROUNDS: Final = 15
_GROWTH_MAX: Final = 1.2


def measure(
    nodes: int = NODES, claim_counts: Sequence[int] = ALLOCATED, attempts: int = ATTEMPTS, rounds: int = ROUNDS
) -> list[Rate]:
    """The rates beside so many allocated claims each."""
    return measure_in_turn([(_beside(count), Size(nodes)) for count in claim_counts], attempts, rounds)


def _beside(count: int) -> Workload:
    workload = WORKLOADS["devices"]

    def existing(node_count: int, pod_count: int) -> Iterator[Json]:
        return itertools.chain(workload.existing(node_count, pod_count), devices.allocated_claims(count))

    return replace(workload, name=f"devices-beside-{count}", existing=existing)


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Whether an attempt costs as much beside the most claims as beside none."""
    growth = rates[-1].us_per_attempt / rates[0].us_per_attempt
    return [at_most("devices, beside the most allocated claims against none", growth, _GROWTH_MAX, "×")]


def table(rates: Sequence[Rate]) -> Table:
    """What people read."""
    rich_table = Table(
        title=f"an attempt at a pod with a claim, engine alone, {rates[0].nodes:,} nodes", title_justify="left"
    )
    rich_table.add_column("beside")
    rich_table.add_column("µs per attempt", justify="right")
    for rate in rates:
        rich_table.add_row(rate.workload, f"{rate.us_per_attempt:,.0f}")
    return rich_table
