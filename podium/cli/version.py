"""`podium version`: shows the exact version of the installation."""

from __future__ import annotations

import platform

import click

import podium
from podium.cli.output import TEXT, output_option, print_value, say
from podium.lib import build


@click.command()
@output_option()
def command(output: str) -> None:
    """Show the version, the commit it was built from, and the Python that runs it."""
    commit = build.commit()
    facts = {
        "version": podium.__version__,
        **({"commit": commit} if commit else {}),
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    if output == TEXT:
        for name, value in facts.items():
            say(f"{name + ':':<10}{value}")
    else:
        print_value(facts, output)
