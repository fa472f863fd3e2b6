"""`podium config`: look at a configuration without running it."""

from __future__ import annotations

from pathlib import Path

import click

from podium.cli.configuration import BadConfiguration, read, support
from podium.config import default_configuration, to_yaml


@click.group()
def command() -> None:
    """Check a configuration file, or show the defaults."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
def check(file: Path) -> None:
    """Say whether FILE is a configuration that podium can run; exit 1 and every error where it is not."""
    loaded = read(file)
    unsupported = support(loaded)
    if unsupported.refused:
        raise BadConfiguration(f"{file}: {error.text}" for error in unsupported.refused)
    for warning in (*loaded.warnings, *unsupported.warnings):
        click.echo(f"{file}: warning: {warning}", err=True)
    names = ", ".join(profile.scheduler_name for profile in loaded.config.profiles)
    click.echo(f"{file}: good, profiles: {names}")


@command.command()
def defaults() -> None:
    """Print the configuration that podium runs with when it is given none."""
    click.echo(to_yaml(default_configuration()), nl=False)
