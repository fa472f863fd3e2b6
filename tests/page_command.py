"""The command line of modules that write what a page of the documentation shows."""

from __future__ import annotations

from collections.abc import Callable

import click


def run_as_command(write: Callable[[], object], description: str | None) -> None:
    """Write, as a command without arguments; with `--help` it only prints its description."""

    @click.command(help=description)
    def command() -> None:
        write()

    command()
