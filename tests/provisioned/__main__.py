"""Carries plans out, and says what of them did not hold.

python -m tests.provisioned --plans 300 --consolidations 300 --gangs 500
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence

from podium.lib.lifeline import end_with_pool_owner
from tests.provisioned.consolidations import CheckedConsolidation, check_consolidation
from tests.provisioned.gang_plans import CheckedGangs, check_gangs
from tests.provisioned.plans import CheckedPlan, check_plan

_SEEDS_PER_PROCESS = 20


def main() -> int:
    """Print each fault, and how much was asked."""
    parser = argparse.ArgumentParser("python -m tests.provisioned", description=__doc__)
    parser.add_argument("--plans", type=int, default=0, help="how many clusters to buy nodes for (default: none)")
    parser.add_argument("--consolidations", type=int, default=0, help="how many to consolidate (default: none)")
    parser.add_argument("--gangs", type=int, default=0, help="how many clusters with gangs to buy for (default: none)")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    options = parser.parse_args()
    # A fresh interpreter each, and now and then a new one: what a daemon freezes at its start is never collected.
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, end_with_pool_owner, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        plans = pool.map(check_plan, range(options.first, options.first + options.plans), chunksize=1)
        seeds = range(options.first, options.first + options.consolidations)
        consolidations = pool.map(check_consolidation, seeds, chunksize=1)
        gangs = pool.map(check_gangs, range(options.first, options.first + options.gangs), chunksize=1)
    wrong = 0
    if plans:
        wrong += _said_of_plans(plans)
    if consolidations:
        wrong += _said_of_consolidations(consolidations)
    if gangs:
        wrong += _said_of_gangs(gangs)
    return int(wrong > 0)


def _said_of_plans(plans: Sequence[CheckedPlan]) -> int:
    wrong = _faulty("plan", plans)
    sys.stdout.write(
        f"{len(plans)} plans, {sum(plan.bought for plan in plans)} nodes bought, each left out once, "
        f"{sum(plan.promised for plan in plans)} pods bound, {sum(plan.staying for plan in plans)} pending, "
        f"{sum(plan.preempted for plan in plans)} preempted: {wrong} plans did not hold\n"
    )
    return wrong


def _said_of_consolidations(consolidations: Sequence[CheckedConsolidation]) -> int:
    wrong = _faulty("consolidation", consolidations)
    sys.stdout.write(
        f"{len(consolidations)} consolidations, {sum(case.commands for case in consolidations)} commands, "
        f"{sum(case.removals for case in consolidations)} nodes removed, "
        f"{sum(case.moves for case in consolidations)} pods moved, "
        f"{sum(case.savings for case in consolidations):.2f} per hour saved: {wrong} consolidations did not hold\n"
    )
    return wrong


def _said_of_gangs(gangs: Sequence[CheckedGangs]) -> int:
    wrong = _faulty("gangs", gangs)
    sys.stdout.write(
        f"{len(gangs)} clusters with gangs, {sum(case.bought for case in gangs)} nodes bought, "
        f"{sum(case.starting for case in gangs)} gangs start, {sum(case.staying for case in gangs)} stay, "
        f"{sum(case.with_devices for case in gangs)} pods bound with devices, "
        f"{sum(case.in_one_zone for case in gangs)} of gangs in one zone: "
        f"{wrong} plans did not hold\n"
    )
    return wrong


def _faulty(kind: str, cases: Sequence[CheckedPlan | CheckedConsolidation | CheckedGangs]) -> int:
    for case in cases:
        for fault in case.faults:
            sys.stdout.write(f"{kind} {case.seed}: {fault}\n")
    return sum(bool(case.faults) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
