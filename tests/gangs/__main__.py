"""Compares the thorough search for gangs, and the smallest fixes of gangs, with brute force.

python -m tests.gangs --count 500 --fixes 200
"""

from __future__ import annotations

import argparse
import sys

from tests.gangs.cases import check, is_beyond_upstream
from tests.gangs.fixes import check_fixes


def main() -> int:
    """Print what is wrong, and how many cases only the search could place."""
    parser = argparse.ArgumentParser(prog="python -m tests.gangs", description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--fixes", type=int, default=0, help="gangs whose smallest fixes are compared")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    wrong = [line for seed in seeds if (line := check(seed))]
    beyond = sum(is_beyond_upstream(seed) for seed in seeds)
    for line in wrong:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(f"{len(seeds)} cases, {beyond} of them beyond upstream: {len(wrong)} missed or wrong\n")
    if options.fixes:
        faults = [fault for seed in range(options.seed, options.seed + options.fixes) for fault in check_fixes(seed)]
        sys.stdout.writelines(f"{fault}\n" for fault in faults)
        sys.stdout.write(f"{options.fixes} gangs to fix: {len(faults)} faults\n")
        wrong += faults
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
