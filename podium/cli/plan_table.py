"""A plan of nodes to buy as text for people: the nodes, what goes where, what stays and why, and how full it all is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import console as console_of_text
from podium.cli.plain_text import plain
from podium.lib.plurals import count_of
from podium.objects.quantity import milli_value
from podium.objects.resource_names import is_extended_resource
from podium.provisioner.reports.plan import GATED, NOMINATED

_BAR = 20
_NOTHING = {"requested": "0", "allocatable": "0"}
_PODS_SHOWN = 3
_NUMBERS = frozenset({"PASS", "NODES", "TYPES", "PER HOUR", "AT WORST", "PODS", "PER MONTH"})
_WITHOUT_PRICES = "No prices: types that no catalogue (--catalogue) has are compared by their size"


def print_plan(answer: Mapping[str, Any]) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal."""
    console = console_of_text()
    if answer["new_nodes"]:
        console.print(_new_nodes(answer["new_nodes"]))
    if answer["existing"]:
        rows = ((node, f"{len(pods):,}", some_of(pods)) for node, pods in answer["existing"].items())
        console.print(table(("EXISTING NODE", "TAKES", "PODS"), rows))
    if answer["unschedulable"]:
        console.print(table(("UNPLACED PODS", "NODEPOOL", "WHY"), _staying(answer["unschedulable"])))
    # A gang that starts shows in the nodes that are bought for it.
    stuck_gangs = [gang for gang in answer.get("gangs", ()) if not gang["starts"]]
    if stuck_gangs:
        rows = ((gang["gang"], f"{gang['needed']:,} of {gang['members']:,}", gang["lacks"]) for gang in stuck_gangs)
        console.print(table(("GANG THAT DOES NOT START", "NEEDS", "WHY"), rows))
    if answer["ignored"]:
        console.print(table(("IGNORED POD", "WHY"), answer["ignored"].items()))
    if answer["skipped"]:
        console.print(table(("NODEPOOL WITHOUT NODES TO BUY", "WHY"), answer["skipped"].items()))
    if answer.get("preempted"):
        console.print(table(("PREEMPTED POD",), ((pod,) for pod in answer["preempted"])))
    console.print(_utilisation(answer["utilisation"]))
    console.print(_verdict(answer))
    # After the verdict, whose price it is about.
    if "proof" in answer:
        console.print(Text(answer["proof"]["text"], "green" if answer["proof"]["proven"] else "yellow"))
    # Without prices, sizes were compared, and a reader must not take them for costs.
    if any(node["price"] is None for node in answer["new_nodes"]):
        console.print(Text(_WITHOUT_PRICES, "yellow"))
    for why, count in sorted(Counter(map(_group_of, answer["not_tried_reasons"].values())).items()):
        console.print(Text(f"{count_of(count, 'pod')} not planned for: {why}", "yellow"))


def _group_of(reason: str) -> str:
    """Return the reason why a pod is not planned for, the same for all pods that share it."""
    if reason.startswith(NOMINATED):
        return "nominated to a node, where preemption makes room"
    if reason == GATED:
        return "held by scheduling gates, which no node removes"
    return "not found unschedulable by kube-scheduler yet (--assume-unschedulable plans for them, too)"


def print_reasons(answer: Mapping[str, Any]) -> None:
    """Print what became of one pod."""
    console = console_of_text()
    if answer.get("pools"):
        console.print(table(("NODEPOOL", "WHY NO NODE IS BOUGHT"), answer["pools"].items()))
    if answer.get("nodes"):
        console.print(table(("EXISTING NODE", "WHY THE POD DOES NOT FIT"), answer["nodes"].items()))
    if answer.get("new_nodes"):
        console.print(table(("NEW NODE FOR", "WHY THE POD DOES NOT FIT, TOO"), answer["new_nodes"].items()))
    console.print(Text.assemble(plain(answer["pod"], "bold"), " ", plain(answer["outcome"])))


def _new_nodes(nodes: Sequence[Mapping[str, Any]]) -> Table:
    """Return a row for all nodes that are alike. Columns of devices and of prices are there if a node has any."""
    # Plans can have thousands of nodes of few kinds.
    alike: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for node in nodes:
        kind = (
            node.get("pass", 1),
            node["pool"],
            node["cheapest_type"],
            len(node["instance_types"]),
            node["price"],
            node["price_at_worst"],
        )
        alike[kind].append(node)
    is_priced = any(node["price"] is not None for node in nodes)
    has_devices = any(map(_devices, nodes))
    has_passes = any("pass" in node for node in nodes)
    headings = [
        *(["PASS"] if has_passes else []),
        *("NODEPOOL", "NODES", "CHEAPEST TYPE" if is_priced else "SMALLEST TYPE", "TYPES"),
        *(["DEVICES OF EACH"] if has_devices else []),
        *(["PER HOUR", "AT WORST"] if is_priced else []),
        "PODS",
        *(["PER MONTH"] if is_priced else []),
    ]
    rows = (
        (
            *([str(number)] if has_passes else []),
            *(pool, f"{len(members):,}", name, f"{count:,}"),
            *([_devices(members[0])] if has_devices else []),
            *([price(hourly, 4), price(worst, 4)] if is_priced else []),
            f"{sum(len(member['pods']) for member in members):,}",
            *([price(_monthly(members), 2)] if is_priced else []),
        )
        for (number, pool, name, count, hourly, worst), members in alike.items()
    )
    numbers = [index for index, heading in enumerate(headings) if heading in _NUMBERS]
    return table(headings, rows, numbers=numbers)


def _devices(node: Mapping[str, Any]) -> str:
    """Return the extended resources of a new node."""
    amounts = node["allocatable"].items()
    return ", ".join(f"{amount} {name}" for name, amount in amounts if is_extended_resource(name) and amount != "0")


def _monthly(nodes: Sequence[Mapping[str, Any]]) -> float | None:
    costs = [node["monthly_cost"] for node in nodes]
    return None if None in costs else sum(costs)


def price(amount: float | None, digits: int) -> str:
    """Return an amount of money with this many digits; `?` if it is not known."""
    return "?" if amount is None else f"{amount:,.{digits}f}"


def _staying(pods: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, str, str]]:
    """Yield the pods that stay for the same reasons together, with a row for each NodePool."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for stay in pods:
        alike[tuple((stay["pools"] or {"": stay["reason"]}).items())].append(stay["pod"])
    for reasons, names in alike.items():
        pods_shown = some_of(names)
        for pool, reason in reasons:
            yield pods_shown, pool, reason
            # The names stand in the first row of a group only.
            pods_shown = ""


def _utilisation(shares: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Table:
    """Return bars of the share of the nodes' amounts that pods request, before and after."""
    bars = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("REQUESTED", "BEFORE", "", "AFTER", ""):
        bars.add_column(heading)
    for name in dict.fromkeys((*shares["before"], *shares["after"])):
        cells = [cell for moment in ("before", "after") for cell in _share(name, shares[moment].get(name, _NOTHING))]
        bars.add_row(plain(name), *cells)
    return bars


def _share(name: str, share: Mapping[str, str]) -> tuple[Text, str]:
    request, have = (milli_value(share[key]) for key in ("requested", "allocatable"))
    part = request / have if have else 0.0
    # Requests may exceed what nodes have where pods were bound by hand; the bar stays within its frame.
    full = min(round(part * _BAR), _BAR)
    bar = Text.assemble(("█" * full, "red" if part > 1 else "green"), ("░" * (_BAR - full), "dim"))
    over = ", overcommitted" if request > have else ""
    return bar, f"{part:4.0%} of {_amount(name, have)}{over}"


def _amount(name: str, amount: int) -> str:
    if name == "cpu":
        return f"{amount / 1000:,g} cores"
    return f"{amount / 1000 / 2**30:,.1f} GiB" if name == "memory" else f"{amount // 1000:,}"


def _verdict(answer: Mapping[str, Any]) -> Text:
    nodes, pod_count = answer["new_nodes"], sum(map(len, answer["existing"].values()))
    count = sum(len(node["pods"]) for node in nodes)
    parts = [Text("No node to buy")]
    if nodes:
        cost = ""
        if answer["hourly_cost"] is not None:
            cost = f": {answer['hourly_cost']:,.4f} per hour, {answer['monthly_cost']:,.2f} per month"
        passes = f" in {answer['passes']} passes" if "passes" in answer else ""
        parts = [
            Text.assemble(
                (f"{count_of(len(nodes), 'node')} to buy", "bold green"), f" for {count_of(count, 'pod')}{passes}{cost}"
            )
        ]
    if pod_count:
        parts.append(Text(f"{count_of(pod_count, 'pod')} on existing nodes"))
    if answer["unschedulable"]:
        parts.append(Text(f"{count_of(len(answer['unschedulable']), 'pod')} unplaced", "bold red"))
    return Text("; ").join(parts)


def some_of(pods: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    hidden_count = len(pods) - _PODS_SHOWN
    return ", ".join(pods[:_PODS_SHOWN]) + (f" and {hidden_count:,} more" if hidden_count > 0 else "")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> Table:
    """Return a table of texts; the columns at `numbers` are flush right."""
    new_table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        new_table.add_column(heading, justify="right" if index in numbers else "left", vertical="top", overflow="fold")
    for row in rows:
        new_table.add_row(*(plain(cell) for cell in row))
    return new_table
