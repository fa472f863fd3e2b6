"""Options of the servers that watch member clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from podium.cli.options.paths import FILE, FOLDER
from podium.cli.options.several import with_options

_OPTIONS: Final = (
    click.option("--kubeconfig", type=FILE, help="A kubeconfig; each of its contexts is a member."),
    click.option("--context", "contexts", multiple=True, help="Use only this context as a member. Repeatable."),
    click.option(
        "--kubeconfig-dir",
        type=FOLDER,
        help="A directory with one kubeconfig per member; changes take effect while it runs.",
    ),
)


def member_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--kubeconfig`, `--context` and `--kubeconfig-dir` to a command that serves many members."""
    return with_options(command, _OPTIONS)
