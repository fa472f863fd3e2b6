"""Asks for outlooks, plays on, and says what of them did not hold.

python -m tests.outlook --questions 500
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter

from podium.lib.lifeline import end_with_pool_owner
from tests.outlook.played import check_outlooks

_SEEDS_PER_PROCESS = 20


def main() -> None:
    """Print each fault, and how many of which answers there were."""
    parser = argparse.ArgumentParser("python -m tests.outlook", description=__doc__)
    parser.add_argument("--questions", type=int, default=500, help="ask at least so many (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first cluster (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="(default: %(default)s)")
    options = parser.parse_args()
    verdicts: Counter[str] = Counter()
    wrong = races = clusters = 0
    # A fresh interpreter each, and now and then a new one: what a daemon freezes at its start is never collected.
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, end_with_pool_owner, maxtasksperchild=_SEEDS_PER_PROCESS) as pool:
        seeds = range(options.first, options.first + options.questions)
        for checked in pool.imap(check_outlooks, seeds, chunksize=1):
            clusters += 1
            verdicts.update(verdict.value for verdict in checked.verdicts)
            wrong += len(checked.faults)
            races += len(checked.races)
            for fault in checked.faults:
                sys.stdout.write(f"cluster {checked.seed}: {fault}\n")
            for fault in checked.races:
                sys.stdout.write(f"cluster {checked.seed}, in one of two orders of ends at one moment: {fault}\n")
            sys.stdout.flush()
            if verdicts.total() >= options.questions:
                break
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
        sys.stdout.write(
            f"{verdicts.total()} questions about {clusters} clusters ({counts}): {wrong} answers did not hold, "
            f"{races} depend on the order of ends at one moment\n"
        )
        sys.stdout.flush()
        # The pool ends its processes by SIGTERM, which the daemon of a play keeps from them. They end with this one.
        os._exit(int(wrong > 0))


if __name__ == "__main__":
    main()
