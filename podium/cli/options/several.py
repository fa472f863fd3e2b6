"""Options that commands share, added together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Command: TypeAlias = Callable[..., Any]


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add the options to the command, which shows them in this order."""
    for option in reversed(options):
        command = option(command)
    return command
