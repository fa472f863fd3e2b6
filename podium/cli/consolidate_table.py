"""A consolidation as text for people: the commands in their order, what they save, and what keeps the other nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.cli.plan_table import price, some_of, table
from podium.lib.plurals import count_of


def print_consolidation(answer: Mapping[str, Any]) -> None:
    """Print to standard output."""
    parts = []
    if answer["commands"]:
        is_priced = any(command["hourly_savings"] is not None for command in answer["commands"])
        headings = ["", "NODES TO REMOVE", "WHY", "REPLACED BY", "PODS TO MOVE"]
        if is_priced:
            headings += ["SAVES PER HOUR", "PER MONTH"]
        rows = _commands(answer["commands"], is_priced=is_priced)
        parts.append(table(headings, rows, numbers=range(4, len(headings))))
    staying = {name: texts for name, texts in answer["blockers"].items() if texts}
    if staying:
        parts.append(table(("NODE TO KEEP", "WHY"), _blockers(staying)))
    show(*parts, _verdict(answer))


def print_node(answer: Mapping[str, Any]) -> None:
    """Print what becomes of one node."""
    parts = []
    if answer["moves"]:
        parts.append(table(("POD", "GOES TO"), answer["moves"].items()))
    if answer["blockers"]:
        parts.append(table(("WHY IT IS KEPT",), ((blocker,) for blocker in answer["blockers"])))
    show(*parts, Text.assemble(plain(answer["node"], "bold"), " ", plain(answer["outcome"])))


def _commands(commands: Iterable[Mapping[str, Any]], *, is_priced: bool) -> Iterator[tuple[str, ...]]:
    for index, command in enumerate(commands, 1):
        kinds = Counter(
            f"{new['instance_type']} ({new['capacity_type']}, {new['zone']})" for new in command["new_nodes"]
        )
        yield (
            str(index),
            some_of(command["nodes"]),
            command["reason"].lower(),
            ", ".join(f"{count} × {kind}" for kind, count in kinds.items()) or "nothing",
            f"{len(command['moves']):,}",
            *([price(command["hourly_savings"], 4), price(command["monthly_savings"], 2)] if is_priced else []),
        )


def _blockers(staying: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    for name, texts in staying.items():
        node_text = name
        for text in texts:
            yield node_text, text
            node_text = ""


def _verdict(answer: Mapping[str, Any]) -> Text:
    going = sum(len(command["nodes"]) for command in answer["commands"])
    new = sum(len(command["new_nodes"]) for command in answer["commands"])
    if not going:
        return Text(f"No node to remove{_most(answer)}")
    saves = "; what that saves is not known without prices (--catalogue)"
    if answer["hourly_savings"] is not None:
        saves = f"; saves {answer['hourly_savings']:,.4f} per hour, {answer['monthly_savings']:,.2f} per month"
    return Text.assemble(
        (f"{count_of(going, 'node')} to remove", "bold green"), f", {new:,} to buy in their place{saves}{_most(answer)}"
    )


def _most(answer: Mapping[str, Any]) -> str:
    # Only an exhaustive search is asked for more than its best find.
    if "hourly_savings_max" not in answer:
        return ""
    return f"; no search could save more than {answer['hourly_savings_max']:,.4f} per hour"
