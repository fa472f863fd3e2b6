"""`python -m tests.control_plane`: finds or builds the real control plane and prints where its binaries are."""

from __future__ import annotations

import sys

import click

from tests.control_plane import catalogue
from tests.control_plane.builder import BuildError, obtain
from tests.control_plane.progress import Progress


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        binaries = obtain(progress)
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    progress.phase("ready")
    for tool in catalogue.TOOLS:
        location = binaries.by_name[tool.name]
        version = catalogue.reported_version(tool, location.path)
        click.echo(f"{tool.name:<23} {version:<8} {location.origin:<19} {location.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
