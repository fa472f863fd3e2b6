"""`python -m tests.fuzz --minutes 10`: hostile inputs at every surface, each in a process of its own.

A finding is printed with its seed and the smallest input that shows it; `--surface S --seed N` runs that seed alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys

import click

from podium.lib.lifeline import end_with_pool_owner
from tests.fuzz.campaign import BATCH, SURFACES, Tally, run_batch, run_named

_BY_NAME = {surface.name: surface for surface in SURFACES}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    surfaces = [options.surface] if options.surface else list(_BY_NAME)
    if options.seed is not None:
        for name in surfaces:
            run_batch(_BY_NAME[name], options.seed, options.inputs, Tally(name), shrink=True)
        return 0
    jobs = [(name, options.minutes * 60.0, options.first) for name in surfaces]
    with multiprocessing.get_context("spawn").Pool(options.processes, end_with_pool_owner, maxtasksperchild=1) as pool:
        tallies = list(pool.imap_unordered(run_named, jobs))
    for tally in tallies:
        for finding in tally.findings.values():
            click.echo(f"\n{tally.surface}, {finding}")
    for tally in tallies:
        click.echo(
            f"{tally.surface}: {tally.inputs} inputs of {tally.batches} seeds, {len(tally.findings)} findings, "
            f"longest stall {tally.longest_s * 1e3:.0f} ms of CPU time"
        )
    return int(any(tally.findings for tally in tallies))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each surface (default: %(default)s)")
    parser.add_argument("--surface", choices=tuple(_BY_NAME), help="only this one")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="surfaces at a time (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this seed, ending at its first finding")
    parser.add_argument("--inputs", type=int, default=BATCH, help="with --seed: how many (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
