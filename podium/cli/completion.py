"""`podium completion`: let a shell complete commands, options and their values."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
_VARIABLE: Final = "_PODIUM_COMPLETE"
"""click looks for it when `podium` starts, and answers the shell instead of running a command."""


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  source <(podium completion bash)
    zsh:   source <(podium completion zsh)
    fish:  podium completion fish | source
    """  # noqa: D301
    click.echo(_SHELLS[shell](context.find_root().command, {}, "podium", _VARIABLE).source())  # noqa: TID251 - a script of click's
