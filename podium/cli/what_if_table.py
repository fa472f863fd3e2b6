"""Prints the answer of `podium what-if` as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight.what_if import Move, Outcome, Pending, Spread
from podium.lib.plurals import count_of

_SHOWN_MAX = 50
_NAMED_MAX = 10
_REFUSED = "the API server refuses pods:"


def print_outcome(steps: Sequence[str], outcome: Outcome) -> None:
    """Print the differences after the steps."""
    parts: list[RenderableType] = [plain(f"after: {', then '.join(steps)}", "bold")]
    parts += _list("moved", [f"{_move_text(move)}: {move.before} → {move.after}" for move in outcome.moved])
    parts += _list("placed", [f"{_move_text(move)} → {move.after}" for move in outcome.placed])
    parts += _list("left pending", _by_reason(outcome.pending), len(outcome.pending))
    parts += _list("preempted", [f"{victim.pod} on {victim.node} for {victim.by}" for victim in outcome.preempted])
    parts += _list("gone", outcome.gone_for_good)
    parts += _list("not evictable", [f"{pod.pod}: {', '.join(pod.budgets)}" for pod in outcome.blocked])
    parts += _list("", [f"{refusal.workload}: {refusal.reason}" for refusal in outcome.refused], heading=_REFUSED)
    if outcome.still_pending:
        parts.append(plain(f"{count_of(len(outcome.still_pending), 'pod')} pending, as before: {_some(outcome)}"))
    parts.append(_usage(outcome))
    parts += _list("", _spreads(outcome.spread.items()), heading="spread of workloads that changed:")
    show(*parts)


def _move_text(move: Move) -> str:
    """Name the pod, and the one that it replaces."""
    is_other = move.replaces not in ("", move.pod)
    return f"{move.pod} (replaces {move.replaces.partition('/')[2]})" if is_other else move.pod


def _by_reason(pending: Sequence[Pending]) -> list[str]:
    """Describe pods that are pending for the same reason in one text."""
    pods: dict[str, list[Pending]] = {}
    for pod in pending:
        pods.setdefault(pod.why, []).append(pod)
    return [f"{_some_of([_with_origin(pod) for pod in alike])}: {reason}" for reason, alike in pods.items()]


def _with_origin(pod: Pending) -> str:
    return f"{pod.pod} (was on {pod.before})" if pod.before else pod.pod


def _some(outcome: Outcome) -> str:
    return _some_of([pod.pod for pod in outcome.still_pending])


def _some_of(texts: Sequence[str]) -> str:
    """Join the first texts, and add the number of the others."""
    remaining_count = len(texts) - _NAMED_MAX
    return ", ".join(texts[:_NAMED_MAX]) + (f" and {remaining_count} more" if remaining_count > 0 else "")


def _list(predicate: str, texts: Sequence[str], count: int = 0, heading: str = "") -> list[RenderableType]:
    if not texts:
        return []
    lines: list[RenderableType] = [plain(heading or f"{count_of(count or len(texts), 'pod')} {predicate}:")]
    lines += [plain(f"  {text}") for text in texts[:_SHOWN_MAX]]
    if len(texts) > _SHOWN_MAX:
        lines.append(plain(f"  and {len(texts) - _SHOWN_MAX} more"))
    return lines


def _usage(outcome: Outcome) -> Table:
    """Tabulate the utilisation by zone and resource, before and after."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("ZONE", "RESOURCE"):
        table.add_column(name, overflow="fold")
    for name in ("BEFORE %", "AFTER %"):
        table.add_column(name, justify="right")
    for zone in dict.fromkeys((*outcome.before, *outcome.after)):
        old_usage, new_usage = outcome.before.get(zone, {}), outcome.after.get(zone, {})
        for resource in dict.fromkeys((*old_usage, *new_usage)):
            numbers = (f"{side[resource].percent:.1f}" if resource in side else "–" for side in (old_usage, new_usage))
            table.add_row(plain(zone or "all"), plain(resource), *numbers)
    return table


def _spreads(spread: Iterable[tuple[str, tuple[Spread, Spread]]]) -> list[str]:
    return [f"{workload}: {old_spread} → {new_spread}" for workload, (old_spread, new_spread) in spread]
