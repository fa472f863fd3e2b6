"""`python -m tests.karpenter`: finds or builds the program around Karpenter's scheduling, says where it is."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.karpenter.binaries import PLANNER, obtain, version


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        click.echo(f"{PLANNER:<12} {version():<8} {obtain(progress)}")
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
