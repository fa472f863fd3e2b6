"""The answer of `podium what-if` as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight.what_if import Outcome, Spread

_SHOWN_MAX = 50


def print_outcome(steps: Sequence[str], found: Outcome) -> None:
    """Print what differs after the steps."""
    parts: list[RenderableType] = [plain(f"after: {', then '.join(steps)}", "bold")]
    parts += _listed("move", [f"{each.pod}: {each.before} → {each.after}" for each in found.moved])
    parts += _listed("are placed", [f"{each.pod} → {each.after}" for each in found.placed])
    parts += _listed(
        "are pending",
        [f"{each.pod}{f' (was on {each.before})' if each.before else ''}: {each.why}" for each in found.pending],
    )
    parts += _listed("are preempted", [f"{each.pod} on {each.node} for {each.by}" for each in found.preempted])
    parts += _listed("are gone", found.gone)
    parts.append(_usage(found))
    parts += _listed("", _spreads(found.spread.items()), heading="spread of workloads that changed:")
    show(*parts)


def _listed(what: str, texts: Sequence[str], heading: str = "") -> list[RenderableType]:
    if not texts:
        return []
    shown: list[RenderableType] = [plain(heading or f"{len(texts)} pod(s) {what}:")]
    shown += [plain(f"  {text}") for text in texts[:_SHOWN_MAX]]
    if len(texts) > _SHOWN_MAX:
        shown.append(plain(f"  and {len(texts) - _SHOWN_MAX} more"))
    return shown


def _usage(found: Outcome) -> Table:
    """The utilisation by zone and resource, before and after."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("ZONE", "RESOURCE"):
        table.add_column(name, overflow="fold")
    for name in ("BEFORE %", "AFTER %"):
        table.add_column(name, justify="right")
    for zone in dict.fromkeys((*found.before, *found.after)):
        before, after = found.before.get(zone, {}), found.after.get(zone, {})
        for resource in dict.fromkeys((*before, *after)):
            numbers = (f"{side[resource].percent:.1f}" if resource in side else "–" for side in (before, after))
            table.add_row(plain(zone or "all"), plain(resource), *numbers)
    return table


def _spreads(spread: Iterable[tuple[str, tuple[Spread, Spread]]]) -> list[str]:
    return [f"{workload}: {before} → {after}" for workload, (before, after) in spread]
