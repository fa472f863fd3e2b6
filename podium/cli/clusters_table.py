"""Prints which clusters take a workload as text: a line for each cluster, then the one to choose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.fleets.answers import FleetFit
from podium.lib.plurals import count_of

_NODES_SHOWN = 3


def print_fleet_fit(answer: FleetFit, *, proof: bool) -> None:
    """Print the answer.

    Args:
        proof: also print the node of each pod.
    """
    parts: list[RenderableType] = [_table(answer), _summary(answer)]
    if proof:
        parts += [_proof(cluster.cluster, cluster.nodes) for cluster in answer.fits]
    show(*parts)


def _table(answer: FleetFit) -> Table:
    has_prices = any(cluster.price is not None for cluster in answer.fits)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("CLUSTER", overflow="fold")
    table.add_column("FITS")
    table.add_column("LOAD", justify="right")
    if has_prices:
        table.add_column("$/HOUR", justify="right")
    table.add_column("WHERE, OR WHY NOT", overflow="fold")
    blank = ["-"] if has_prices else []
    for cluster in answer.fits:
        load = f"{cluster.load:.1f} %" if math.isfinite(cluster.load) else "-"
        price = ["-" if cluster.price is None else f"{cluster.price:.4g}"] if has_prices else []
        table.add_row(plain(cluster.cluster), Text("yes", "green"), load, *price, plain(_where(cluster.nodes)))
    for rejection in answer.rejections:
        pod = f"{rejection.pod} after {rejection.placed_count:,} of {answer.pods:,}: " if rejection.pod else ""
        table.add_row(plain(rejection.cluster), Text("no", "red"), "-", *blank, plain(f"{pod}{rejection.reason}"))
    for name, reason in answer.without.items():
        table.add_row(plain(name), "?", "-", *blank, plain(reason), style="dim")
    return table


def _where(nodes: Mapping[str, str]) -> str:
    """Return the nodes with the most pods, and how many pods each has."""
    counts = Counter(nodes.values())
    busiest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    suffix = f" and {len(counts) - _NODES_SHOWN} more" if len(counts) > _NODES_SHOWN else ""
    return ", ".join(f"{name}: {count}" for name, count in busiest[:_NODES_SHOWN]) + suffix


def _summary(answer: FleetFit) -> Text:
    pods = count_of(answer.pods, "pod")
    if answer.best is None:
        return Text.assemble(("None", "bold red"), plain(f" takes {answer.workload} whole ({pods})"))
    count = f" and {len(answer.untried):,} more not needed" if answer.untried else ""
    return Text.assemble(plain(answer.best, "bold green"), plain(f" takes {answer.workload} whole ({pods}){count}"))


def _proof(cluster: str, nodes: Mapping[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=plain(cluster), title_justify="left")
    table.add_column("POD", overflow="fold")
    table.add_column("NODE", overflow="fold")
    for pod, node in nodes.items():
        table.add_row(plain(pod), plain(node))
    return table
