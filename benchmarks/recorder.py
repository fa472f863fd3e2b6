"""What the flight recorder costs: attempts of the engine alone without it and with it, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from benchmarks.in_process import Rate, measure_with_recorder
from benchmarks.targets import Check, at_most
from benchmarks.workloads import WORKLOADS

NODES: Final = 5_000
ATTEMPTS: Final = 500
ROUNDS: Final = 15
_US_MAX: Final = 7.0
"""1 % of the CPU that the daemon takes for a plain pod at 5,000 nodes, from the watch to the binding: about 0.7 ms."""


def measure(nodes: int = NODES, attempts: int = ATTEMPTS, rounds: int = ROUNDS) -> list[Rate]:
    """Attempts at plain pods without the recorder, and with it."""
    return measure_with_recorder(WORKLOADS["plain"], nodes, attempts, rounds)


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Whether an attempt costs hardly more."""
    without, recording_rate = rates
    return [at_most("recorder, an attempt", recording_rate.us_per_attempt - without.us_per_attempt, _US_MAX, " µs")]


def table(rates: Sequence[Rate]) -> Table:
    """What people read."""
    rich_table = Table(title="the flight recorder, engine alone, one core", title_justify="left")
    for heading in ("recorder", "nodes", "attempts", "µs per attempt"):
        rich_table.add_column(heading, justify="right")
    for name, rate in zip(("off", "on"), rates, strict=True):
        rich_table.add_row(name, f"{rate.nodes:,}", f"{rate.attempts:,}", f"{rate.us_per_attempt:,.1f}")
    return rich_table
