"""A plan of nodes to buy as text for people: the nodes, what goes where, what stays and why, and how full it all is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.asking import console as console_of_text
from podium.cli.plain_text import plain

_BAR = 20
_PODS_SHOWN = 3


def print_plan(answer: Mapping[str, Any]) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal."""
    console = console_of_text()
    if answer["new_nodes"]:
        console.print(_new_nodes(answer["new_nodes"]))
    if answer["existing"]:
        rows = ((node, f"{len(pods):,}", some_of(pods)) for node, pods in answer["existing"].items())
        console.print(table(("NODE THAT IS THERE", "TAKES", "PODS"), rows))
    if answer["unschedulable"]:
        console.print(table(("PODS THAT STAY", "NODEPOOL", "WHY"), _staying(answer["unschedulable"])))
    if answer["ignored"]:
        console.print(table(("IGNORED POD", "WHY"), answer["ignored"].items()))
    if answer["skipped"]:
        console.print(table(("NODEPOOL WITHOUT NODES TO BUY", "WHY"), answer["skipped"].items()))
    if answer.get("preempted"):
        console.print(table(("POD THAT IS PREEMPTED",), ((pod,) for pod in answer["preempted"])))
    console.print(_utilisation(answer["utilisation"]))
    console.print(_verdict(answer))
    count = len(answer["not_tried"])
    if count:
        console.print(
            Text(
                f"{_pods(count)} not planned for, since kube-scheduler has not found them unschedulable yet "
                f"(--assume-unschedulable plans for them, too)",
                "yellow",
            )
        )


def print_reasons(answer: Mapping[str, Any]) -> None:
    """Print what became of one pod."""
    console = console_of_text()
    if answer.get("pools"):
        console.print(table(("NODEPOOL", "WHY NO NODE IS BOUGHT"), answer["pools"].items()))
    if answer.get("nodes"):
        console.print(table(("NODE THAT IS THERE", "WHY IT DOES NOT TAKE THE POD"), answer["nodes"].items()))
    if answer.get("new_nodes"):
        console.print(table(("NEW NODE FOR", "WHY IT DOES NOT TAKE THE POD, TOO"), answer["new_nodes"].items()))
    console.print(Text.assemble(plain(answer["pod"], "bold"), " ", plain(answer["outcome"])))


def _new_nodes(nodes: Iterable[Mapping[str, Any]]) -> Table:
    """A row for all nodes that are alike."""
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for each in nodes:
        kind = (each["pool"], each["cheapest_type"], len(each["instance_types"]), each["price"], each["price_at_worst"])
        alike[kind].append(each)
    headings = ("NODEPOOL", "NODES", "CHEAPEST TYPE", "TYPES", "PER HOUR", "AT WORST", "PODS", "PER MONTH")
    rows = (
        (
            pool,
            f"{len(members):,}",
            name,
            f"{count:,}",
            f"{price:.4f}",
            f"{worst:.4f}",
            f"{sum(len(each['pods']) for each in members):,}",
            f"{sum(each['monthly_cost'] for each in members):,.2f}",
        )
        for (pool, name, count, price, worst), members in alike.items()
    )
    return table(headings, rows, numbers=(1, 3, 4, 5, 6, 7))


def _staying(pods: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str, str]]:
    """The pods that stay for the same reasons together, with a row for each NodePool."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for each in pods:
        alike[tuple((each["pools"] or {"": each["reason"]}).items())].append(each["pod"])
    for reasons, names in alike.items():
        shown = some_of(names)
        for pool, reason in reasons:
            yield shown, pool, reason
            shown = ""


def _utilisation(shares: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Table:
    """Bars of what pods request of what nodes have, before and after."""
    bars = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("REQUESTED", "BEFORE", "", "AFTER", ""):
        bars.add_column(heading)
    for name in shares["before"]:
        cells = [cell for when in ("before", "after") for cell in _share(name, shares[when][name])]
        bars.add_row(name, *cells)
    return bars


def _share(name: str, share: Mapping[str, int]) -> tuple[Text, str]:
    used, have = share["requested"], share["allocatable"]
    part = used / have if have else 0.0
    full = min(round(part * _BAR), _BAR)
    bar = Text.assemble(("█" * full, "red" if part > 1 else "green"), ("░" * (_BAR - full), "dim"))
    return bar, f"{part:4.0%} of {_amount(name, have)}"


def _amount(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount / 1000:,g} cores"
    return f"{amount / 2**30:,.1f} GiB" if name == "memory" else f"{amount:,}"


def _verdict(answer: Mapping[str, Any]) -> Text:
    nodes, placed = answer["new_nodes"], sum(map(len, answer["existing"].values()))
    count = sum(len(each["pods"]) for each in nodes)
    parts = [Text("No node to buy")]
    if nodes:
        what = "1 node" if len(nodes) == 1 else f"{len(nodes):,} nodes"
        cost = f"{answer['hourly_cost']:,.4f} per hour, {answer['monthly_cost']:,.2f} per month"
        parts = [Text.assemble((f"{what} to buy", "bold green"), f" for {_pods(count)}: {cost}")]
    if placed:
        parts.append(Text(f"{_pods(placed)} on nodes that are there"))
    if answer["unschedulable"]:
        parts.append(Text(f"{_pods(len(answer['unschedulable']))} left", "bold red"))
    return Text("; ").join(parts)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"


def some_of(pods: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(pods) - _PODS_SHOWN
    return ", ".join(pods[:_PODS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> Table:
    """A table of texts; the columns at `numbers` are flush right."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        found.add_column(heading, justify="right" if index in numbers else "left", vertical="top", overflow="fold")
    for row in rows:
        found.add_row(*(plain(cell) for cell in row))
    return found
