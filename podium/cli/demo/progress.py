"""The progress of the demo: a live bar on a terminal, otherwise a plain line every second."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from podium.cli.plain_text import PlainConsole

_REDRAW_S = 0.1
_LINE_S = 1.0


class _Rate(ProgressColumn):
    """Steps per second since the stage began."""

    def render(self, task: Task) -> Text:
        """Show the rate once it is known."""
        elapsed_s = task.finished_time if task.finished else task.elapsed
        if not elapsed_s or not task.completed or task.total == 1:
            return Text("")
        return Text(f"{task.completed / elapsed_s:,.0f}/s", style="cyan")


class LiveProgress:
    """One bar per stage. The event loop redraws it, since a thread would take time from the measured scheduler."""

    def __init__(self, console: PlainConsole) -> None:
        columns = (
            TextColumn("{task.description:<22}"),
            BarColumn(30, complete_style="cyan", finished_style="green"),
            MofNCompleteColumn(),
            _Rate(),
        )
        self._bars = Progress(*columns, console=console, auto_refresh=False)
        self._stage: TaskID | None = None
        self._total = 0
        self._drawn_s = 0.0
        self._text_s = 0.0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, stage: str, total: int) -> None:
        """Add a bar for a new stage."""
        self._stage, self._total = self._bars.add_task(stage, total=total), total
        self._bars.refresh()

    def advance(self, step: int) -> None:
        """Advance the newest bar."""
        assert self._stage is not None
        self._bars.update(self._stage, completed=step)
        now_s = time.monotonic()
        if step == self._total or now_s - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now_s
            self._bars.refresh()

    def tell(self, text: str) -> None:
        """Print the text above the bars, unless another was printed a moment ago."""
        now_s = time.monotonic()
        if now_s - self._text_s >= _REDRAW_S:
            self._text_s = now_s
            self._bars.console.print(f"  {text}")


class PlainProgress:
    """A line when a stage begins, one every second while it lasts, and one at its end."""

    def __init__(self, console: PlainConsole) -> None:
        self._console = console
        self._what = ""
        self._total = 0
        self._written_s = 0.0
        self._text_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, stage: str, total: int) -> None:
        """Print that a stage begins."""
        self._what, self._total, self._written_s = stage, total, time.monotonic()
        self._console.print(stage if total == 1 else f"{stage}: 0/{total}")

    def advance(self, step: int) -> None:
        """Print the progress, at most once a second."""
        now_s = time.monotonic()
        if self._total > 1 and (step == self._total or now_s - self._written_s >= _LINE_S):
            self._written_s = now_s
            self._console.print(f"{self._what}: {step}/{self._total}")

    def tell(self, text: str) -> None:
        """Print the text, at most once a second."""
        now_s = time.monotonic()
        if now_s - self._text_s >= _LINE_S:
            self._text_s = now_s
            self._console.print(text)
