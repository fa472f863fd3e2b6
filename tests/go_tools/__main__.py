"""`python -m tests.go_tools`: finds or builds the tools that tests run, says where they are."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.go_tools.binaries import obtain


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        binaries = obtain(progress)
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    for name, path in binaries.items():
        click.echo(f"{name:<12} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
