"""`podium version`: what exactly is installed."""

from __future__ import annotations

import platform
import subprocess
from importlib import resources
from pathlib import Path

import click

import podium
from podium.cli.output import TEXT, output_option, print_value


@click.command()
@output_option()
def command(output: str) -> None:
    """Show the version, the commit it was built from, and the Python that runs it."""
    commit = _built_from() or _checked_out()
    known = {
        "version": podium.__version__,
        **({"commit": commit} if commit else {}),
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    if output == TEXT:
        for name, value in known.items():
            click.echo(f"{name + ':':<10}{value}")
    else:
        print_value(known, output)


def _built_from() -> str:
    file = resources.files(podium) / "COMMIT"
    return file.read_text().strip() if file.is_file() else ""


def _checked_out() -> str:
    """The commit of the repository that podium runs from, if it is installed in place and git can tell."""
    folder = Path(podium.__file__).parents[1]
    if not (folder / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
