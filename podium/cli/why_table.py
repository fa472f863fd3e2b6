"""The answers of `podium why` as text for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from podium.cli.asking import show
from podium.cli.device_table import devices_missing
from podium.cli.plain_text import heading, plain

if TYPE_CHECKING:
    from podium.framework.contract.status import Status
    from podium.insight import Fix, GangFix, Why
    from podium.insight.pod_answer import PodAnswer

_BEST_MAX = 5


Score: TypeAlias = tuple[str, int, Mapping[str, int]]
"""A node, its total score, and each plugin's part."""

Group: TypeAlias = tuple[int, str, str, Sequence[str]]
"""How many nodes a plugin keeps the pod off, the plugin, its reason, and some of the nodes."""

Blocker: TypeAlias = tuple[str, str, str]
"""A plugin that keeps the pod off a node, its reason, and amounts."""


def print_why(answer: PodAnswer, head: Sequence[RenderableType] = (), said: str = "") -> None:
    """Print the answer, and the fixes if they were asked for.

    Args:
        head: what a running podium says, which is printed first.
        said: the message in it, which need not be repeated.
    """
    found, scheduler = answer.why, answer.scheduler
    judged_by: RenderableType = plain(scheduler.judged_by)
    verdict: list[RenderableType] = [_headline(found, said)]
    if found.gang is not None:
        verdict.append(plain(found.gang.headline, "bold"))
        verdict += [plain(f"  {line}", "" if found.gang.fits else "yellow") for line in found.gang.lines]
    parts: list[RenderableType] = [*head, *verdict, judged_by]
    if scheduler.warning:
        parts = [*head, plain(scheduler.warning, "red"), judged_by, *verdict]
    condition = answer.condition
    parts += condition_lines(None if condition is None else condition.as_dict(), is_pending=not found.bound_to)
    parts += [_gate(gate, found.summarized) for gate in found.gates]
    parts += [plain(note, "yellow") for note in found.notes]
    best = [(each.node, each.total, each.plugins) for each in found.scores]
    groups = [
        (each.count, each.plugin, f"{each.text}: {each.detail}" if each.detail else each.text, each.examples)
        for each in found.groups
        if each.text not in found.summarized
    ]
    parts += scores_and_groups(best, found.verdict, groups, {found.asked, found.bound_to})
    parts += devices_missing(found.devices, found.asked)
    if found.asked:
        parts += _asked(found)
    if found.node is None and found.one_edit_away is not None:
        count = len(found.one_edit_away)
        verb = "node is" if count == 1 else "nodes are"
        parts.append(plain(f"{count} {verb} one edit away{_examples(found.one_edit_away)}"))
    if found.preemption:
        parts.append(plain(found.preemption))
    if (fixes := answer.fixes) is not None:
        parts.append(plain(fixes.text, "bold"))
        for fix in fixes.fixes:
            parts += _fix(fix)
    show(*parts)


def scores_and_groups(
    scores: Sequence[Score], verdict: str, groups: Sequence[Group], others: Collection[str]
) -> list[RenderableType]:
    """The scores of the best nodes, why the winner won, and the other nodes by what keeps the pod off them.

    Args:
        scores: the winner first.
        others: nodes whose scores are shown whatever their place.
    """
    parts: list[RenderableType] = []
    if scores:
        parts += [_best(scores, others), plain(verdict)]
    if groups:
        parts += [Text("what keeps it off the other nodes:" if scores else "what keeps it off:"), _groups(groups)]
    return parts


def blockers_of(node: str, blockers: Sequence[Blocker]) -> list[RenderableType]:
    """What keeps the pod off one node; nothing if it fits."""
    texts = (f"  {plugin}: {text}{f'; {detail}' if detail else ''}" for plugin, text, detail in blockers)
    return [plain(f"It does not fit on {node}:"), *map(plain, texts)] if blockers else []


def condition_lines(condition: Mapping[str, Any] | None, *, is_pending: bool) -> list[RenderableType]:
    """What the pod's PodScheduled condition says, if it is pending, and why the answer beside it differs."""
    if not is_pending:
        return []
    if condition is None:
        return [plain("It has no PodScheduled condition: no scheduler has tried it yet")]
    since = f" (since {condition['since']})" if condition["since"] else ""
    if not condition["differences"]:
        return [plain(f"Its PodScheduled condition agrees: {condition['reason']}{since}")]
    said = f"{condition['reason']}: {condition['message']}".strip(": ")
    because = "; ".join(condition["differences"])
    return [plain(f"Its PodScheduled condition says{since}: {said}"), plain(f"They differ because {because}", "yellow")]


def _headline(found: Why, said: str) -> Text:
    fits = len(found.scores)
    if found.bound_to:
        text = f" is on {found.bound_to}. If it were pending now, it would "
        if found.node is None:
            return Text.assemble(plain(found.pod, "bold"), plain(text), ("fit on no node", "red"))
        return Text.assemble(plain(found.pod, "bold"), plain(text), "go to ", plain(found.node, "bold green"))
    if found.node is None:
        if found.error:
            verdict = (" cannot be placed, its attempts fail: ", "red")
            return Text.assemble(plain(found.pod, "bold"), verdict, plain(found.message))
        why = found.summary or found.message
        if said.startswith(why.rstrip(".")):
            return Text.assemble(plain(found.pod, "bold"), (" still fits on no node", "red"))
        return Text.assemble(plain(found.pod, "bold"), (" fits on no node: ", "red"), plain(why))
    text = f" fits on {fits} of {found.node_count} nodes and would go to "
    gang = (", but its gang does not fit", "red") if found.gang is not None and not found.gang.fits else ""
    return Text.assemble(plain(found.pod, "bold"), text, plain(found.node, "bold green"), gang)


def _gate(gate: Status, summarized: Collection[str]) -> Text:
    text = "It would not be tried yet" if gate.message in summarized else f"It would not be tried yet: {gate.message}"
    return plain(f"{text} ({gate.plugin})", "yellow")


def _best(scores: Sequence[Score], others: Collection[str]) -> Table:
    """The scores of the best nodes, and of nodes that were asked about."""
    winner = scores[0][0]
    shown = [*scores[:_BEST_MAX], *(each for each in scores[_BEST_MAX:] if each[0] in others)]
    names = list(scores[0][2])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODE", overflow="fold", vertical="top")
    for name in ("TOTAL", *names):
        table.add_column(heading(name), justify="right", vertical="top")
    for node, total, plugins in shown:
        numbers = (str(total), *(str(plugins.get(name, 0)) for name in names))
        table.add_row(plain(node), *numbers, style="bold green" if node == winner else "")
    return table


def _groups(groups: Sequence[Group]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODES", justify="right")
    table.add_column("PLUGIN")
    table.add_column("WHY", overflow="fold")
    table.add_column("SUCH AS", overflow="fold")
    for count, plugin, text, examples in groups:
        table.add_row(str(count), plugin, plain(text), plain(", ".join(examples)))
    return table


def _asked(found: Why) -> list[RenderableType]:
    """What keeps the pod off the node that was asked about, or its place among the scores."""
    place = next((at for at, each in enumerate(found.scores, 1) if each.node == found.asked), None)
    more = "" if place is None else f", which is number {place} of {len(found.scores)}"
    blockers = [(each.plugin, each.text, each.detail) for each in found.blockers.get(found.asked, ())]
    return blockers_of(found.asked, blockers) or [plain(f"It fits on {found.asked}{more}")]


def _examples(names: tuple[str, ...], most: int = 3) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:most])
    return f": {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")


def _fix(fix: Fix | GangFix) -> list[RenderableType]:
    """The edits in words, and the patch of each object that is changed."""
    from podium.insight import Edit

    parts: list[RenderableType] = [
        Text.assemble(plain("  " + _counted_texts([each.text for each in fix.edits])), " → ", plain(fix.node, "green"))
    ]
    for part in fix.edits:
        each, members = (part, ()) if isinstance(part, Edit) else (part.edit, part.members)
        if each.changes:
            patch = json.dumps([dict(operation) for operation in each.changes], separators=(",", ":"))
            more = f" and {len(members) - 1} more" if len(members) > 1 else ""
            parts.append(plain(f"    {each.object_kind} {each.name}{more}: {patch}", "dim"))
    return parts


def _counted_texts(texts: Sequence[str]) -> str:
    """The texts in one sentence; equal ones once, with their number."""
    counts = Counter(texts)
    return " and ".join(text if count == 1 else f"{text} ({count} times)" for text, count in counts.items())
