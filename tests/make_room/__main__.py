"""Checks `podium make-room` on random clusters.

python -m tests.make_room --moves 300 --ruled 150 --spread 300 --carried-out 300 --rates 320
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence

from podium.insight.room.plan import Verdict
from podium.lib.lifeline import end_with_pool_owner
from tests.make_room.cases import (
    TimedAnswer,
    check_carried_out,
    check_moves,
    check_ruled_moves,
    check_spread_carried_out,
    check_spread_moves,
    timed_answer,
)
from tests.make_room.clusters import NODES, PODS_PER_NODE, USAGES, full_cluster

_SEEDS_PER_PROCESS = 20
_SECONDS = (1.0, 10.0)
_SEEDS_MAX = 200


def main() -> int:
    """Print each fault, how much was checked, and how often a placement was found in time."""
    parser = argparse.ArgumentParser("python -m tests.make_room", description=__doc__)
    parser.add_argument("--moves", type=int, default=0, help="small clusters to compare with brute force")
    parser.add_argument("--ruled", type=int, default=0, help="the same with devices and zones")
    parser.add_argument("--spread", type=int, default=0, help="with topology spread, and carried out")
    parser.add_argument("--carried-out", type=int, default=0, help="plans to carry out in the sandbox")
    parser.add_argument("--rates", type=int, default=0, help="clusters of 4 to 32 nodes to solve in 1 s and in 10 s")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args()
    is_wrong = False
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, end_with_pool_owner, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        checks = pool.map(check_moves, range(options.first, options.first + options.moves), chunksize=1)
        checks += pool.map(check_ruled_moves, range(options.first, options.first + options.ruled), chunksize=1)
        spread_seeds = range(options.first, options.first + options.spread)
        checks += pool.map(check_spread_moves, spread_seeds, chunksize=1)
        plans = pool.map(check_spread_carried_out, spread_seeds, chunksize=1)
        plans += pool.map(check_carried_out, range(options.first, options.first + options.carried_out), chunksize=1)
    if checks:
        comparisons = [check for check in checks if check is not None]
        is_wrong |= _say_faults("moves", comparisons)
        sys.stdout.write(
            f"{len(checks)} clusters, {len(comparisons)} compared with brute force, "
            f"{sum(check.fewest is not None for check in comparisons)} with moves, "
            f"{sum(check.is_proven for check in comparisons)} proven\n"
        )
    if plans:
        is_wrong |= _say_faults("plan", plans)
        moves = [plan.moves for plan in plans if plan.moves is not None]
        sys.stdout.write(f"{len(plans)} clusters, {len(moves)} plans carried out, {sum(moves)} moves\n")
    if options.rates:
        _say_rates(options.first, options.rates)
    return int(is_wrong)


def _say_faults(kind: str, cases: Sequence[object]) -> bool:
    faulty = False
    for case in cases:
        for fault in case.faults:  # type: ignore[attr-defined]
            faulty = True
            sys.stdout.write(f"{kind} {case.seed}: {fault}\n")  # type: ignore[attr-defined]
    return faulty


def _say_rates(first: int, count: int) -> None:
    """Solve clusters of every shape in turn; one at a time, as the CPU time of this process counts."""
    shapes = [(nodes, pods, usage) for nodes in NODES for pods in PODS_PER_NODE for usage in USAGES]
    answers: dict[float, list[TimedAnswer]] = {seconds: [] for seconds in _SECONDS}
    for number in range(count):
        nodes, pods, usage = shapes[number % len(shapes)]
        seeds = range(first + number * _SEEDS_MAX, first + (number + 1) * _SEEDS_MAX)
        cluster = next((entry for seed in seeds if (entry := full_cluster(seed, nodes, pods, usage))), None)
        if cluster is None:
            continue
        for seconds in _SECONDS:
            answer = timed_answer(cluster, f"{nodes} nodes, {pods} pods each, {usage:.0%}", seconds)
            answers[seconds].append(answer)
            sys.stdout.write(
                f"{answer.name}: {seconds:g} s: {answer.verdict.value}, {answer.moves} moves, {answer.seconds:.1f} s\n"
            )
    solvable = [
        number
        for number in range(len(answers[_SECONDS[-1]]))
        if not any(
            answers[seconds][number].verdict is Verdict.IMPOSSIBLE and answers[seconds][number].is_proven
            for seconds in _SECONDS
        )
    ]
    for seconds, timed in answers.items():
        solved = sum(timed[number].moves is not None or timed[number].verdict is Verdict.FITS for number in solvable)
        sys.stdout.write(
            f"{seconds:g} s: a placement for {solved} of {len(solvable)} clusters that are not proven to have none "
            f"({len(timed)} in all)\n"
        )


if __name__ == "__main__":
    sys.exit(main())
