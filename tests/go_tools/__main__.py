"""`python -m tests.go_tools [NAME]...`: finds or builds the tools that tests run, says where they are."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.go_tools.binaries import PACKAGES, obtain


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PACKAGES)))
def main(names: tuple[str, ...]) -> None:
    """Exits with 1 where one cannot be built."""
    progress = Progress(interval_s=3.0)
    try:
        for name in names or PACKAGES:
            click.echo(f"{name:<12} {obtain(name, progress)}")
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        sys.exit(1)


if __name__ == "__main__":
    main()
