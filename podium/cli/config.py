"""`podium config`: look at a configuration without running it."""

from __future__ import annotations

from pathlib import Path

import click

from podium.cli.configuration import plugin_option, usable
from podium.config import default_configuration, to_yaml


@click.group()
def command() -> None:
    """Check a configuration file, or show the defaults."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@plugin_option
def check(file: Path, plugins: tuple[str, ...]) -> None:
    """Say whether FILE is a configuration that podium can run; exit 1 and every error where it is not."""
    good = usable(file, plugins)
    for warning in good.warnings:
        click.echo(f"{file}: warning: {warning}", err=True)
    names = ", ".join(profile.scheduler_name for profile in good.config.profiles)
    click.echo(f"{file}: good, profiles: {names}")


@command.command()
def defaults() -> None:
    """Print the configuration that podium runs with when it is given none."""
    click.echo(to_yaml(default_configuration()), nl=False)
