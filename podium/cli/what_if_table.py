"""The answer of `podium what-if` as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight.what_if import Move, Outcome, Pending, Spread

_SHOWN_MAX = 50
_NAMED_MAX = 10
_REFUSED = "the API server refuses pods:"


def print_outcome(steps: Sequence[str], found: Outcome) -> None:
    """Print what differs after the steps."""
    parts: list[RenderableType] = [plain(f"after: {', then '.join(steps)}", "bold")]
    parts += _listed("move", [f"{_named(move)}: {move.before} → {move.after}" for move in found.moved])
    parts += _listed("are placed", [f"{_named(move)} → {move.after}" for move in found.placed])
    parts += _listed("are pending", _by_reason(found.pending), len(found.pending))
    parts += _listed("are preempted", [f"{victim.pod} on {victim.node} for {victim.by}" for victim in found.preempted])
    parts += _listed("are gone", found.gone_for_good)
    parts += _listed("cannot be evicted", [f"{pod.pod}: {', '.join(pod.budgets)}" for pod in found.blocked])
    parts += _listed("", [f"{each.workload}: {each.reason}" for each in found.refused], heading=_REFUSED)
    if found.still_pending:
        parts.append(plain(f"{_pods(len(found.still_pending))} were pending before and still are: {_some(found)}"))
    parts.append(_usage(found))
    parts += _listed("", _spreads(found.spread.items()), heading="spread of workloads that changed:")
    show(*parts)


def _named(move: Move) -> str:
    """The pod, and the one that it replaces."""
    is_other = move.replaces not in ("", move.pod)
    return f"{move.pod} (replaces {move.replaces.partition('/')[2]})" if is_other else move.pod


def _by_reason(pending: Sequence[Pending]) -> list[str]:
    """Pods that are pending for the same reason, in one text."""
    pods: dict[str, list[Pending]] = {}
    for pod in pending:
        pods.setdefault(pod.why, []).append(pod)
    return [f"{_some_of([_with_origin(pod) for pod in alike])}: {reason}" for reason, alike in pods.items()]


def _with_origin(pod: Pending) -> str:
    return f"{pod.pod} (was on {pod.before})" if pod.before else pod.pod


def _some(found: Outcome) -> str:
    return _some_of([pod.pod for pod in found.still_pending])


def _some_of(texts: Sequence[str]) -> str:
    """The first texts, and how many more there are."""
    more = len(texts) - _NAMED_MAX
    return ", ".join(texts[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _pods(count: int) -> str:
    return f"{count} pod(s)"


def _listed(what: str, texts: Sequence[str], count: int = 0, heading: str = "") -> list[RenderableType]:
    if not texts:
        return []
    shown: list[RenderableType] = [plain(heading or f"{_pods(count or len(texts))} {what}:")]
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
