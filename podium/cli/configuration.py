"""Reading a configuration file for a command: every error shown, with its field; every warning too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from podium.config import ConfigError, Loaded, Unsupported, load, load_file, to_yaml, unsupported
from podium.config import default_configuration as defaults
from podium.plugins import IN_TREE

EXIT_BAD_CONFIGURATION = 1


class BadConfiguration(click.ClickException):
    """The file cannot be used; shows every reason, one a line."""

    exit_code = EXIT_BAD_CONFIGURATION

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__("\n".join(lines))

    def show(self, file: object = None) -> None:
        """Print the reasons as they are."""
        del file
        click.echo(self.message, err=True)


def read(path: Path) -> Loaded:
    """Load and validate a file.

    Raises:
        BadConfiguration: it cannot be read, or it is not valid.
    """
    try:
        return load_file(path)
    except ConfigError as error:
        raise BadConfiguration(str(error).splitlines()) from error
    except OSError as error:
        raise BadConfiguration([f"{path}: {error.strerror}"]) from error


def read_defaults() -> Loaded:
    """What podium runs with when it is given no file."""
    return load(to_yaml(defaults()), "defaults")


def support(loaded: Loaded) -> Unsupported:
    """What this podium cannot do of the file."""
    return unsupported(loaded, IN_TREE)
