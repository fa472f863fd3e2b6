"""Shows the progress of a command that answers many questions: a line on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from podium.cli.plain_text import PlainConsole

_REDRAWS_PER_S = 4


@contextmanager
def counting(noun: str) -> Iterator[Callable[[], None]]:
    """Show a running count on standard error, unless the answers themselves are seen on the terminal.

    Args:
        noun: the words after the number.
    """
    console = PlainConsole(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed} {task.description}"),
        TimeElapsedColumn(),
        console=console,
        refresh_per_second=_REDRAWS_PER_S,
        transient=True,
        redirect_stdout=False,
        disable=not console.is_terminal or sys.stdout.isatty(),
    )
    with bar:
        task = bar.add_task(noun, total=None)
        yield lambda: bar.advance(task)
