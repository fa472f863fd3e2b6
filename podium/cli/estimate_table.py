"""Prints an estimate as text: a line for each node if requested, then the number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import console, plain


def print_answer(answer: Mapping[str, Any]) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal."""
    out = console()
    if "nodes" in answer:
        out.print(_nodes(answer["nodes"]))
    at_least = "at least " if answer.get("partial") else ""
    out.print(Text.assemble(at_least, (f"{answer['replicas']:,}", "bold green"), " replicas fit"))
    if "general_replicas" in answer:
        for count, phrase in (
            (answer["general_replicas"], "fit by the Cluster's summary and models"),
            (answer["merged_replicas"], "is the number that Karmada uses"),
        ):
            out.print(Text.assemble((f"{count:,}", "bold"), f" {phrase}"))
    if "allocatable_modelings" in answer:
        counts = [(modeling["count"], modeling["grade"]) for modeling in answer["allocatable_modelings"]]
        grades = ", ".join(f"{count} of grade {grade}" for count, grade in counts if count)
        out.print(Text(f"Nodes by what they have left: {grades or 'none'}"))


def print_general_answers(answer: Mapping[str, Any]) -> None:
    """Print the general estimates of several clusters."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("CLUSTER", overflow="fold")
    table.add_column("REPLICAS", justify="right")
    for row in answer["clusters"]:
        table.add_row(plain(row["cluster"]), f"{row['general_replicas']:,}")
    console().print(table)


def _nodes(nodes: list[Mapping[str, Any]]) -> Table:
    """Tabulate the nodes, those with the most fitting replicas first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODE", overflow="fold")
    table.add_column("REPLICAS", justify="right")
    table.add_column("LIMITED BY", overflow="fold")
    for node in sorted(nodes, key=lambda node: (-node["replicas"], node["node"])):
        count, style = f"{node['replicas']:,}", "" if node["replicas"] else "dim"
        table.add_row(plain(node["node"]), count, plain(node["limit"]), style=style)
    return table
