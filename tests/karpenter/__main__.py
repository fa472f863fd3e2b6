"""`python -m tests.karpenter`: finds or builds the programs around Karpenter's packages, says where they are."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.karpenter.binaries import PLANNER, RECORDER, obtain, version


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        for program in (PLANNER, RECORDER):
            click.echo(f"{program:<12} {version():<8} {obtain(progress, program)}")
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
