"""Prints a division as text: a line for each cluster, then the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import console, plain


def print_division(answer: Mapping[str, Any]) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal."""
    out = console()
    out.print(_table(answer))
    style = "bold green" if answer["reason"] == "Success" else "bold red"
    out.print(Text.assemble((answer["reason"], style), ": ", plain(answer["message"])))
    if answer.get("affinity"):
        out.print(plain(f"Affinity group: {answer['affinity']}"))
    for name, replies in answer.get("estimated", {}).items():
        for error in replies.get("errors", ()) if isinstance(replies.get("errors"), list) else ():
            out.print(plain(f"{name} does not count: {error}"))


def _table(answer: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("CLUSTER", overflow="fold")
    table.add_column("REPLICAS", justify="right")
    table.add_column("AVAILABLE", justify="right")
    is_explained = "explanation" in answer
    if is_explained:
        table.add_column("WHY", overflow="fold")
        table.add_column("MORE WITH", overflow="fold")
    rows = answer["explanation"] if is_explained else _rows(answer)
    for row in rows:
        available = answer.get("available", {}).get(row["cluster"])
        count = "-" if row["replicas"] is None else f"{row['replicas']:,}"
        cells: list[str | Text] = [plain(row["cluster"]), count, "-" if available is None else f"{available:,}"]
        if is_explained:
            cells += [plain(row["why"]), plain(row["remedy"] or "-")]
        table.add_row(*cells, style="" if row["replicas"] or row["replicas"] is None else "dim")
    return table


def _rows(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the clusters of the result, then the other feasible ones."""
    shares = answer["clusters"]
    names = dict.fromkeys([*shares, *sorted(answer.get("available", ()))])
    return [{"cluster": name, "replicas": shares.get(name, 0)} for name in names]
