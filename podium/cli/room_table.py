"""Prints the answers of `podium make-room` and of `podium what-if --order` as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight.room.drain_order import DrainBatch, DrainOrder
from podium.insight.room.plan import RoomAnswer, RoomMove, RoomPlan, Verdict
from podium.lib.plurals import count_of
from podium.objects.amounts import amount_text
from podium.objects.resource_names import MEMORY

_MOVES_SHOWN_MAX = 50


def print_answer(answer: RoomAnswer) -> None:
    """Print what was found, the steps, and the pods that stay and are in the way."""
    parts: list[RenderableType] = [plain(answer.text, "bold" if answer.verdict is not Verdict.IMPOSSIBLE else "red")]
    if answer.plan is not None:
        parts += _plan(answer.plan)
    if answer.note:
        parts.append(plain(f"note: {answer.note}", "yellow"))
    # Where moves are found, pods that stay are in nobody's way.
    if answer.immovable and answer.plan is None:
        parts.append(plain("pods that are not moved:"))
        parts += [plain(f"  {pod.pod} on {pod.node}: {pod.reason}") for pod in answer.immovable]
    show(*parts)


def _plan(plan: RoomPlan) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for number, step in enumerate(plan.steps, 1):
        lines.append(plain(f"{number}. move {step.pod} ({step.workload}): {step.source} → {step.target}"))
        lines += [plain(f"   {text}") for text in _how(step)]
    nodes = ", ".join(f"{pod} → {node}" for pod, node in plan.nodes.items())
    lines.append(plain(f"{len(plan.steps) + 1}. {nodes}", "green"))
    if plan.uncordons:
        lines.append(plain(f"   nominate, then uncordon {', '.join(plan.uncordons)}"))
    cost = plan.cost
    lines.append(
        plain(
            f"cost: {amount_text(MEMORY, cost.requested_bytes)} requested by the moved pods, "
            f"priorities {cost.priorities:,}, {count_of(cost.restarts, 'container')} restarted"
        )
    )
    return lines


def _how(step: RoomMove) -> list[str]:
    """Describe what makes the step hold."""
    texts = []
    if step.cordons:
        texts.append(f"cordon {', '.join(step.cordons)} before it")
    if step.opens:
        texts.append(f"nominate the replacement to {step.opens}, then uncordon that")
    if step.uncordons:
        texts.append(f"uncordon {', '.join(step.uncordons)} after it")
    return texts


def print_drain_order(order: DrainOrder) -> None:
    """Print the batches with their moves, and what keeps the other nodes from being drained."""
    parts: list[RenderableType] = []
    if order.batches:
        parts.append(plain("cordon all of these nodes first, then drain them in this order:", "bold"))
    for number, batch in enumerate(order.batches, 1):
        parts.append(plain(f"{number}. {', '.join(batch.nodes)}{_rounds(batch)}: {count_of(len(batch.moves), 'pod')}"))
        parts += _moves(batch)
    if order.blockers:
        parts.append(plain("cannot be drained:", "red"))
        for blocker in order.blockers:
            parts.append(plain(f"  {blocker.node}: {blocker.pod}: {blocker.reason}"))
            parts.append(plain(f"    fix: {blocker.fix}"))
    show(*parts)


def _rounds(batch: DrainBatch) -> str:
    return f" in {batch.rounds} rounds" if batch.rounds > 1 else ""


def _moves(batch: DrainBatch) -> Sequence[RenderableType]:
    lines: list[RenderableType] = [
        plain(f"   {move.pod}: {move.source} → {move.target or 'gone, nothing replaces it'}")
        for move in batch.moves[:_MOVES_SHOWN_MAX]
    ]
    if len(batch.moves) > _MOVES_SHOWN_MAX:
        lines.append(plain(f"   and {len(batch.moves) - _MOVES_SHOWN_MAX} more"))
    return lines
