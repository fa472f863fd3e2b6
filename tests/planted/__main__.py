"""Plants differences and lets podium find them: `python -m tests.planted`."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from tests.planted.check import check
from tests.planted.plants import plants


def main() -> int:
    """Print what podium names wrongly, and how many it names rightly."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="plants whose name has this in it")
    options = parser.parse_args()
    selection = [plant for plant in plants() if options.only in plant.name]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    right = 0
    for plant in selection:
        with TemporaryDirectory() as directory:
            wrong = check(plant, Path(directory))
        right += not wrong
        sys.stdout.writelines(f"{line}\n" for line in wrong)
    sys.stdout.write(f"{right} of {len(selection)} planted differences are named rightly\n")
    return int(right < len(selection))


if __name__ == "__main__":
    sys.exit(main())
