"""Checks `podium make-room` on random clusters.

python -m tests.make_room --moves 300 --ruled 150 --spread 300 --carried-out 300 --recipe 320 --rates 320
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

from podium.insight.room.plan import Verdict
from podium.lib.lifeline import end_with_pool_owner
from tests.make_room.carried_out import CarriedOut
from tests.make_room.cases import (
    TimedAnswer,
    check_carried_out,
    check_moves,
    check_recipe_carried_out,
    check_ruled_carried_out,
    check_ruled_moves,
    check_spread_carried_out,
    check_spread_moves,
    cluster_of_recipe,
    timed_answer,
)

_SEEDS_PER_PROCESS = 20
_SECONDS = (1.0, 10.0)


def main() -> int:
    """Print each fault, how much was checked, and how often a placement was found in time."""
    parser = argparse.ArgumentParser("python -m tests.make_room", description=__doc__)
    parser.add_argument("--moves", type=int, default=0, help="small clusters to compare with brute force")
    parser.add_argument("--ruled", type=int, default=0, help="the same with devices and zones, and carried out")
    parser.add_argument("--spread", type=int, default=0, help="with topology spread, and carried out")
    parser.add_argument("--carried-out", type=int, default=0, help="plans to carry out in the sandbox")
    parser.add_argument("--recipe", type=int, default=0, help="plans to carry out in clusters of 4 to 32 nodes")
    parser.add_argument("--rates", type=int, default=0, help="clusters of 4 to 32 nodes to solve in 1 s and in 10 s")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="(default: %(default)s)")
    options = parser.parse_args()
    is_wrong = False
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, end_with_pool_owner, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        checks = pool.map(check_moves, range(options.first, options.first + options.moves), chunksize=1)
        ruled_seeds = range(options.first, options.first + options.ruled)
        checks += pool.map(check_ruled_moves, ruled_seeds, chunksize=1)
        spread_seeds = range(options.first, options.first + options.spread)
        checks += pool.map(check_spread_moves, spread_seeds, chunksize=1)
        plans = pool.map(check_ruled_carried_out, ruled_seeds, chunksize=1)
        plans += pool.map(check_spread_carried_out, spread_seeds, chunksize=1)
        plans += pool.map(check_carried_out, range(options.first, options.first + options.carried_out), chunksize=1)
        plans_of_recipe = pool.map(
            partial(check_recipe_carried_out, first=options.first), range(options.recipe), chunksize=1
        )
    if checks:
        comparisons = [check for check in checks if check is not None]
        is_wrong |= _say_faults("moves", comparisons)
        sys.stdout.write(
            f"{len(checks)} clusters, {len(comparisons)} compared with brute force, "
            f"{sum(check.fewest is not None for check in comparisons)} with moves, "
            f"{sum(check.is_proven for check in comparisons)} proven\n"
        )
    if plans:
        is_wrong |= _say_plans("plan", plans)
    if plans_of_recipe:
        is_wrong |= _say_plans("plan of the recipe", [plan for plan in plans_of_recipe if plan is not None])
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


def _say_plans(kind: str, plans: Sequence[CarriedOut]) -> bool:
    is_wrong = _say_faults(kind, plans)
    shapes = dict.fromkeys(plan.name for plan in plans)
    for name in shapes:
        of_shape = [plan for plan in plans if plan.name == name]
        carried_out = [plan for plan in of_shape if plan.moves is not None]
        moves = sum(plan.moves or 0 for plan in carried_out)
        verdicts = Counter("placed already" if plan.verdict is None else plan.verdict.value for plan in of_shape)
        sys.stdout.write(
            f"{kind}{f', {name}' if name else ''}: {len(of_shape)} clusters "
            f"({', '.join(f'{word} {count}' for word, count in sorted(verdicts.items()))}), "
            f"{len(carried_out)} plans carried out, {moves} moves, {sum(plan.as_said for plan in carried_out)} to the "
            f"very node named, {sum(plan.devices for plan in carried_out)} devices asked for\n"
        )
    return is_wrong


def _say_rates(first: int, count: int) -> None:
    """Solve clusters of every shape in turn; one at a time, as the CPU time of this process counts."""
    answers: dict[float, list[TimedAnswer]] = {seconds: [] for seconds in _SECONDS}
    for number in range(count):
        named_cluster = cluster_of_recipe(number, first)
        if named_cluster is None:
            continue
        name, cluster = named_cluster
        for seconds in _SECONDS:
            answer = timed_answer(cluster, name, seconds)
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
