"""`python -m tests.simulation --seeds 200 --steps 2000`: run seeds, in as many processes as there are cores.

A seed that breaks a rule is printed with the end of its history; run it alone with `--seed N --show` for all of it, and
write it into `KEPT` in test_simulation.py once it is understood.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from podium.lib.lifeline import end_with_pool_owner
from tests.simulation.observed import configuration
from tests.simulation.recordings import replay_all
from tests.simulation.shards import simulate_shards_quietly
from tests.simulation.simulation import History, simulate_quietly

_LINES_SHOWN = 25
_SEEDS_PER_PROCESS = 10


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.shards:
        seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
        return _run_all(simulate_shards_quietly, _jobs(seeds, options), options.processes)
    if options.seed is not None:
        history = simulate_quietly((options.seed, options.steps, options.devices, options.gangs), options.record)
        click.echo("\n".join(history.lines if options.show else history.lines[-_LINES_SHOWN:]))
        click.echo(_summary(history))
        is_same = options.record is None or _replays(options.record, gangs=options.gangs)
        click.echo(f"{_speed([history]):.0f} simulated hours per CPU hour")
        return int(history.violation is not None or not is_same)
    seeds = range(options.first, options.first + options.seeds)
    return _run_all(simulate_quietly, _jobs(seeds, options), options.processes)


def _jobs(seeds: Iterable[int], options: argparse.Namespace) -> list[tuple[int, int, bool, bool]]:
    return [(seed, options.steps, options.devices, options.gangs) for seed in seeds]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=2000, help="of each (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--devices", action="store_true", help="nodes have devices, and pods claims for them")
    parser.add_argument("--gangs", action="store_true", help="some pods are members of gangs")
    parser.add_argument("--shards", action="store_true", help="three members of a group divide the nodes")
    parser.add_argument("--record", type=Path, help="with --seed: record it into this new directory, and replay it")
    parser.add_argument("--show", action="store_true", help="with --seed: all of its history")
    return parser


def _run_all(simulate: Callable[[Any], History], jobs: Sequence[Any], processes: int) -> int:
    started_s, histories = time.monotonic(), []
    # A fresh interpreter each, and now and then a new one: what a daemon freezes at its start is never collected.
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, end_with_pool_owner, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        for history in pool.imap_unordered(simulate, jobs):
            histories.append(history)
            if history.violation is not None:
                click.echo("\n  ".join((f"seed {history.seed}:", *history.lines[-_LINES_SHOWN:])))
            click.echo(f"{len(histories)} {_summary(history)}")
    broken_seeds = sorted(history.seed for history in histories if history.violation is not None)
    click.echo(
        f"{len(histories)} seeds, {sum(history.steps for history in histories)} steps, "
        f"{sum(history.faults for history in histories)} faults, "
        f"{sum(history.deaths for history in histories)} deaths, "
        f"{sum(history.bound_count for history in histories)} pods bound, "
        f"{sum(history.claimants for history in histories)} with claims created, "
        f"in {time.monotonic() - started_s:.0f} s, "
        f"{_speed(histories):.0f} simulated hours per CPU hour: "
        + (f"broken: {broken_seeds}" if broken_seeds else "clean")
    )
    return int(bool(broken_seeds))


def _speed(histories: Sequence[History]) -> float:
    """Return how much faster than time a simulation is, on one core."""
    return sum(history.simulated_s for history in histories) / sum(history.cpu_s for history in histories)


def _replays(directory: Path, *, gangs: bool) -> bool:
    """Return True if every recording in the directory replays to the same decisions."""
    replays = replay_all(directory, configuration(gangs=gangs))
    for life, replay in enumerate(replays, 1):
        click.echo(f"life {life}: {json.dumps(replay.summary())}")
        if replay.outcome.divergence is not None:
            click.echo(f"  {replay.outcome.divergence}")
    return all(replay.is_same for replay in replays)


def _summary(history: History) -> str:
    return (
        f"seed {history.seed}: {history.steps} steps, {history.faults} faults, {history.deaths} deaths, "
        f"{history.bound_count} bound, {history.digest}: {history.violation or 'clean'}"
    )


if __name__ == "__main__":
    sys.exit(main())
