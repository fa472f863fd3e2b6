"""`python -m tests.karmada [NAME]...`: finds or builds Karmada's estimator client and server, says where they are."""

from __future__ import annotations

import sys

import click

from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress
from tests.karmada.binaries import PACKAGES, obtain, version


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PACKAGES)))
def main(names: tuple[str, ...]) -> None:
    """Exits with 1 where one cannot be built."""
    progress = Progress(interval_s=3.0)
    try:
        for name in names or PACKAGES:
            click.echo(f"{name:<20} {version():<8} {obtain(name, progress)}")
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        sys.exit(1)


if __name__ == "__main__":
    main()
