"""`python -m tests.browser`: finds or fetches what tests of pages need, says where it is."""

from __future__ import annotations

import sys

import click

from tests.browser import axe, chromium, npm
from tests.control_plane.builder import BuildError
from tests.control_plane.progress import Progress


def main() -> int:
    progress = Progress(interval_s=3.0)
    try:
        click.echo(f"{'chromium':<12} {chromium.obtain(progress).program}")
        click.echo(f"{'axe-core':<12} {npm.obtain(axe.PACKAGE, progress)}")
    except BuildError as problem:
        progress.phase(f"not available: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
