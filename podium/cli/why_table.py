"""Prints the answers of `podium why` as text."""

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
_EXAMPLES_MAX = 3

Score: TypeAlias = tuple[str, int, Mapping[str, int]]
"""A node, its total score, and each plugin's share."""

Group: TypeAlias = tuple[int, str, str, Sequence[str]]
"""The number of nodes that a plugin rejects, the plugin, its reason, and some of the nodes."""

Blocker: TypeAlias = tuple[str, str, str]
"""A plugin that rejects a node, its reason, and amounts."""


def print_why(answer: PodAnswer, head: Sequence[RenderableType] = (), shown_message: str = "") -> None:
    """Print the answer, and the fixes if the user asked for them.

    Args:
        head: the lines about a running podium, which are printed first.
        shown_message: the message in these lines, which is not repeated.
    """
    why, scheduler = answer.why, answer.scheduler
    introduction: RenderableType = plain(scheduler.introduction)
    verdict: list[RenderableType] = [_headline(why, shown_message)]
    if why.gang is not None:
        verdict.append(plain(why.gang.headline, "bold"))
        verdict += [plain(f"  {line}", "" if why.gang.fits else "yellow") for line in why.gang.lines]
    parts: list[RenderableType] = [*head, *verdict, introduction]
    if scheduler.warning:
        # A warning about the profile qualifies everything, so it comes before the verdict.
        parts = [*head, plain(scheduler.warning, "red"), introduction, *verdict]
    condition = answer.condition
    parts += condition_lines(None if condition is None else condition.as_dict(), is_pending=not why.bound_to)
    parts += [_gate(gate, why.summarized) for gate in why.gates]
    parts += [plain(note, "yellow") for note in why.notes]
    best = [(score.node, score.total, score.plugins) for score in why.scores]
    groups = [
        (group.count, group.plugin, f"{group.text}: {group.detail}" if group.detail else group.text, group.examples)
        for group in why.groups
        # The headline says it already.
        if group.text not in why.summarized
    ]
    parts += scores_and_groups(best, why.verdict, groups, {why.asked, why.bound_to})
    parts += devices_missing(why.devices, why.asked)
    if why.asked:
        parts += _asked_node(why)
    if why.node is None and why.one_edit_away is not None:
        count = len(why.one_edit_away)
        verb = "node is" if count == 1 else "nodes are"
        parts.append(plain(f"{count} {verb} one edit away{_examples(why.one_edit_away)}"))
    if why.preemption:
        parts.append(plain(why.preemption))
    if (fixes := answer.fixes) is not None:
        parts.append(plain(fixes.text, "bold"))
        for fix in fixes.fixes:
            parts += _fix(fix)
    show(*parts)


def scores_and_groups(
    scores: Sequence[Score], verdict: str, groups: Sequence[Group], extra_nodes: Collection[str]
) -> list[RenderableType]:
    """List the scores of the best nodes, the verdict, and the other nodes by the plugins that reject them.

    Args:
        scores: the scores, the winner's first.
        extra_nodes: nodes whose scores are shown at any rank.
    """
    parts: list[RenderableType] = []
    if scores:
        parts += [_best(scores, extra_nodes), plain(verdict)]
    if groups:
        parts += [Text("blockers on the other nodes:" if scores else "blockers:"), _groups(groups)]
    return parts


def blockers_of(node: str, blockers: Sequence[Blocker]) -> list[RenderableType]:
    """List the blockers of one node; return nothing if the pod fits."""
    texts = (f"  {plugin}: {text}{f'; {detail}' if detail else ''}" for plugin, text, detail in blockers)
    return [plain(f"It does not fit on {node}:"), *map(plain, texts)] if blockers else []


def condition_lines(condition: Mapping[str, Any] | None, *, is_pending: bool) -> list[RenderableType]:
    """Show the PodScheduled condition of a pending pod, and the reasons why the answer differs from it."""
    if not is_pending:
        return []
    if condition is None:
        return [plain("It has no PodScheduled condition: no scheduler has tried it yet")]
    since_text = f" (since {condition['since']})" if condition["since"] else ""
    if not condition["differences"]:
        return [plain(f"Its PodScheduled condition agrees: {condition['reason']}{since_text}")]
    message = f"{condition['reason']}: {condition['message']}".strip(": ")
    because = "; ".join(condition["differences"])
    return [
        plain(f"Its PodScheduled condition says{since_text}: {message}"),
        plain(f"They differ because {because}", "yellow"),
    ]


def _headline(why: Why, shown_message: str) -> Text:
    fits = len(why.scores)
    if why.bound_to:
        text = f" is on {why.bound_to}. If it were pending now, it would "
        if why.node is None:
            return Text.assemble(plain(why.pod, "bold"), plain(text), ("fit on no node", "red"))
        return Text.assemble(plain(why.pod, "bold"), plain(text), "go to ", plain(why.node, "bold green"))
    if why.node is None:
        if why.error:
            verdict = (" cannot be placed, its attempts fail: ", "red")
            return Text.assemble(plain(why.pod, "bold"), verdict, plain(why.message))
        reason = why.summary or why.message
        # The running podium's message was shown above it.
        if shown_message.startswith(reason.rstrip(".")):
            return Text.assemble(plain(why.pod, "bold"), (" still fits on no node", "red"))
        return Text.assemble(plain(why.pod, "bold"), (" fits on no node: ", "red"), plain(reason))
    text = f" fits on {fits} of {why.node_count} nodes and would go to "
    gang = (", but its gang does not fit", "red") if why.gang is not None and not why.gang.fits else ""
    return Text.assemble(plain(why.pod, "bold"), text, plain(why.node, "bold green"), gang)


def _gate(gate: Status, summarized: Collection[str]) -> Text:
    text = "It would not be tried yet" if gate.message in summarized else f"It would not be tried yet: {gate.message}"
    return plain(f"{text} ({gate.plugin})", "yellow")


def _best(scores: Sequence[Score], extra_nodes: Collection[str]) -> Table:
    """Tabulate the scores of the best nodes, and of the nodes in question."""
    winner = scores[0][0]
    # A node that was asked about is shown wherever it ranks.
    rows = [*scores[:_BEST_MAX], *(score for score in scores[_BEST_MAX:] if score[0] in extra_nodes)]
    names = list(scores[0][2])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODE", overflow="fold", vertical="top")
    for name in ("TOTAL", *names):
        table.add_column(heading(name), justify="right", vertical="top")
    for node, total, plugins in rows:
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


def _asked_node(why: Why) -> list[RenderableType]:
    """List the blockers of the node in question, or show its rank among the scores."""
    place = next((rank for rank, score in enumerate(why.scores, 1) if score.node == why.asked), None)
    rank_text = "" if place is None else f", which is number {place} of {len(why.scores)}"
    blockers = [(blocker.plugin, blocker.text, blocker.detail) for blocker in why.blockers.get(why.asked, ())]
    return blockers_of(why.asked, blockers) or [plain(f"It fits on {why.asked}{rank_text}")]


def _examples(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    name_list = ", ".join(names[:_EXAMPLES_MAX])
    return f": {name_list}" + (f" and {len(names) - _EXAMPLES_MAX} more" if len(names) > _EXAMPLES_MAX else "")


def _fix(fix: Fix | GangFix) -> list[RenderableType]:
    """Describe the edits in words, with the patch of each object that changes."""
    from podium.insight import Edit

    parts: list[RenderableType] = [
        Text.assemble(plain("  " + _counted_texts([edit.text for edit in fix.edits])), " → ", plain(fix.node, "green"))
    ]
    for part in fix.edits:
        edit, members = (part, ()) if isinstance(part, Edit) else (part.edit, part.members)
        if edit.changes:
            patch = json.dumps([dict(operation) for operation in edit.changes], separators=(",", ":"))
            # One patch stands for all members of the gang.
            others_text = f" and {len(members) - 1} more" if len(members) > 1 else ""
            parts.append(plain(f"    {edit.object_kind} {edit.name}{others_text}: {patch}", "dim"))
    return parts


def _counted_texts(texts: Sequence[str]) -> str:
    """Join the texts to one sentence; equal ones once, with their number."""
    counts = Counter(texts)
    return " and ".join(text if count == 1 else f"{text} ({count} times)" for text, count in counts.items())
