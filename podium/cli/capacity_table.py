"""Prints the answers of `podium capacity` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight import Capacity, Headroom
from podium.lib.plurals import count_of
from podium.library.new_nodes import NewNodeCapacity

_NEW_NODES_MAX = 10


def print_capacities(capacities: Sequence[Capacity], *, together: bool, explain: bool) -> None:
    """Print the answers, and the sum of pods that were placed together."""
    parts: list[RenderableType] = []
    for capacity in capacities:
        parts += _capacity(capacity, explain=explain)
    if together:
        parts.append(
            Text.assemble((f"{sum(capacity.fits for capacity in capacities):,}", "bold green"), " pods fit together")
        )
    show(*parts)


def print_new_nodes(capacities: Sequence[NewNodeCapacity]) -> None:
    """Print how many fit on one new node of each type: the types of the lowest price per pod first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("NEW NODE", "FITS", "PRICE/H", "NEXT ONE IS KEPT OFF BY"):
        table.add_column(title, overflow="fold")
    ranked = sorted(capacities, key=_cost_per_pod)
    for capacity in ranked[:_NEW_NODES_MAX]:
        node = capacity.node
        price = "" if node.price is None else f"{node.price:.4f}"
        of_pool = f" of NodePool {node.pool}" if node.pool else ""
        name = f"{node.type} ({node.zone}, {node.capacity_type}){of_pool}"
        table.add_row(plain(name), f"{capacity.fits:,}", price, plain(capacity.limit))
    parts: list[RenderableType] = [table] if ranked else []
    if len(ranked) > _NEW_NODES_MAX:
        parts.append(Text(f"and {len(ranked) - _NEW_NODES_MAX:,} more types (-o json has all)"))
    show(*parts)


def _cost_per_pod(capacity: NewNodeCapacity) -> float:
    """Return what one pod costs on the node, and for nodes that take none infinity; without prices they are alike."""
    if not capacity.fits:
        return float("inf")
    return (capacity.node.price or 0.0) / capacity.fits


def _capacity(capacity: Capacity, *, explain: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if explain:
        parts.append(_nodes(capacity))
    gang = capacity.gang
    if gang is not None and gang.problem:
        parts.append(plain(f"It is a pod of the gang {gang.gang}, but {gang.problem}", "yellow"))
    elif gang is not None:
        gangs = f"at least {gang.fits:,}" if gang.is_at_least else f"{gang.fits:,}"
        domain_text = f", each in one {gang.domain_key}" if gang.domain_key else ""
        noun = "gang" if gang.fits == 1 else "gangs"
        parts.append(
            Text.assemble(
                (gangs, "bold green" if gang.fits else "red"),
                f" more whole {noun} of {gang.size:,} pods like ",
                plain(gang.gang, "bold"),
                plain(f" {'fits' if gang.fits == 1 else 'fit'}{domain_text}; pod by pod:"),
            )
        )
    count = f"at least {capacity.fits:,}" if capacity.is_at_least else f"{capacity.fits:,}"
    parts.append(
        Text.assemble(
            (count, "bold green" if capacity.fits else "red"), " more of ", plain(capacity.pod, "bold"), " fit"
        )
    )
    if capacity.gate:
        parts.append(plain(f"It would not be tried: {capacity.gate}", "yellow"))
    if any(capacity.zones):
        parts.append(
            Text.assemble(
                "by zone: ", plain(", ".join(f"{zone or 'no zone'} {n:,}" for zone, n in capacity.zones.items()))
            )
        )
    if capacity.limits:
        parts.append(Text("what blocks the next one:"))
        # Nodes with the same limit are explained together, with the amounts of all of them.
        nodes_of: dict[str, list[str]] = {}
        for node in capacity.nodes:
            nodes_of.setdefault(node.limit, []).append(node.node)
        parts += [
            plain(f"  {count_of(count, 'node')}: {capacity.limit_text(limit, nodes_of[limit])}")
            for limit, count in capacity.limits.items()
        ]
    return parts


def _nodes(capacity: Capacity) -> Table:
    """Tabulate the nodes, those with the most fitting pods first."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODE", overflow="fold")
    table.add_column("ZONE", overflow="fold")
    table.add_column("FITS", justify="right")
    table.add_column("WHAT BLOCKS THE NEXT ONE", overflow="fold")
    for node in sorted(capacity.nodes, key=lambda node: (-node.fits, node.node)):
        style = "" if node.fits else "dim"
        limit = plain(capacity.limit_text(node.limit, [node.node]))
        table.add_row(plain(node.node), plain(node.zone), f"{node.fits:,}", limit, style=style)
    return table


def print_headroom(answers: Sequence[Headroom]) -> None:
    """Print the largest size of each pod."""
    parts: list[RenderableType] = []
    for headroom in answers:
        times = f"{headroom.times:,} times"
        verb = "fits" if headroom.fits else "does not fit"
        parts.append(
            Text.assemble(plain(headroom.pod, "bold"), (f" {verb} ", "green" if headroom.fits else "red"), times)
        )
        parts += _largest(headroom.amounts, times)
        # Scaling all requests answers what changing one cannot: a pod may be short of several.
        if headroom.percent:
            parts.append(Text(f"  with all requests at {headroom.percent:,} % of what they are it fits {times}"))
        if not headroom.amounts and not headroom.percent:
            parts.append(Text(f"  no size of its requests lets it fit {times}"))
    show(*parts)


def _largest(amounts: Mapping[str, str], times: str) -> list[RenderableType]:
    return [
        plain(f"  with up to {amount} of {resource}, and its other requests as they are, it fits {times}")
        for resource, amount in amounts.items()
    ]
