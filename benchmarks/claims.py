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
    nodes: int = NODES, allocated: Sequence[int] = ALLOCATED, attempts: int = ATTEMPTS, rounds: int = ROUNDS
) -> list[Rate]:
    """The rates beside so many allocated claims each."""
    return measure_in_turn([(_beside(each), Size(nodes)) for each in allocated], attempts, rounds)


def _beside(count: int) -> Workload:
    workload = WORKLOADS["devices"]

    def before(node_count: int, pod_count: int) -> Iterator[Json]:
        return itertools.chain(workload.before(node_count, pod_count), devices.allocated_claims(count))

    return replace(workload, name=f"devices-beside-{count}", before=before)


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Whether an attempt costs as much beside the most claims as beside none."""
    growth = rates[-1].us_per_attempt / rates[0].us_per_attempt
    return [at_most("devices, beside the most allocated claims against none", growth, _GROWTH_MAX, "×")]


def table(rates: Sequence[Rate]) -> Table:
    """What people read."""
    shown = Table(
        title=f"an attempt at a pod with a claim, engine alone, {rates[0].nodes:,} nodes", title_justify="left"
    )
    shown.add_column("beside")
    shown.add_column("µs per attempt", justify="right")
    for each in rates:
        shown.add_row(each.workload, f"{each.us_per_attempt:,.0f}")
    return shown
