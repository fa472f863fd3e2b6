"""Shows `podium demo --autoscale`: on a terminal one screen that changes, else a line for each event."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from podium.cli.demo.autoscale import ClusterView, NodeView
from podium.cli.plain_text import PlainConsole, plain

_NODES_MAX: Final = 10
_LINES_MAX: Final = 9
_BAR: Final = 20
_WIDTH_MAX: Final = 80


class PlainScreen:
    """A line for each event."""

    def __init__(self, console: PlainConsole) -> None:
        self._console = console
        self._started_s = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def tell(self, line: str) -> None:
        """Print the line with the time."""
        self._console.print(_with_time(line, self._started_s), soft_wrap=True)

    def show(self, cluster: ClusterView) -> None:
        """Do nothing: `tell` prints the changes."""


class LiveScreen:
    """The cluster and the last events, on one screen of 80 columns."""

    def __init__(self, console: PlainConsole) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._ascii_only = console.options.ascii_only
        self._started_s = time.monotonic()
        self._lines: list[Text] = []
        self._seen = ClusterView()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def tell(self, line: str) -> None:
        """Add the line."""
        self._lines.append(_with_time(line, self._started_s))
        self._draw()

    def show(self, cluster: ClusterView) -> None:
        """Draw the cluster."""
        self._seen = cluster
        self._draw()

    def _draw(self) -> None:
        cluster = screen(self._seen, ascii_only=self._ascii_only)
        parts: list[RenderableType] = [*self._lines[-_LINES_MAX:], Text(), cluster]
        self._live.update(Group(*parts), refresh=True)


def screen(cluster: ClusterView, *, ascii_only: bool = False) -> Group:
    """Lay out the cluster: a line of sums, and a row for each node."""
    waiting = cluster.pods - cluster.bound_count
    head = Text.assemble(
        (cluster.text, "bold"),
        f", {cluster.bound_count} pods bound, ",
        (f"{waiting} waiting", "yellow" if waiting else ""),
    )
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    if cluster.nodes:
        table.add_row("NODE", "TYPE", "PODS", "CPU REQUESTED", "CORES", style="dim")
    for node in cluster.nodes[:_NODES_MAX]:
        table.add_row(*_row(node, ascii_only=ascii_only))
    remaining_count = len(cluster.nodes) - _NODES_MAX
    return Group(head, table, *([Text(f"and {remaining_count} more")] if remaining_count > 0 else []))


def _row(node: NodeView, *, ascii_only: bool) -> tuple[Text | str, ...]:
    width = round(min(node.cpu, 1.0) * _BAR)
    full, empty = ("#", ".") if ascii_only else ("█", "░")
    bar = Text(full * width, style="red" if node.is_leaving else "cyan")
    bar.append(f"{empty * (_BAR - width)} {node.cpu:4.0%}", style="dim")
    name = Text(node.name, style="red strike" if node.is_leaving and not ascii_only else "")
    return name, node.instance_type.removesuffix("-linux"), str(node.pods), bar, f"{node.cores:,.0f}"


def _with_time(line: str, started_s: float) -> Text:
    return plain(f"{time.monotonic() - started_s:5.1f} s  {line}"[:_WIDTH_MAX])
