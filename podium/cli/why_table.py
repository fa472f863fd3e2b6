"""The answers of `podium why` as text for people."""

from __future__ import annotations

import json
import re

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.insight import EditKind, Fix, Fixes, Why

_BEST_MAX = 5
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def print_why(found: Why, fixes: Fixes | None) -> None:
    """Print the answer, and the fixes if they were asked for."""
    parts: list[RenderableType] = [_headline(found)]
    parts += [plain(f"It would not be tried yet: {gate.message} ({gate.plugin})", "yellow") for gate in found.gates]
    if found.scores:
        parts += [_best(found), plain(found.verdict)]
    if found.groups:
        parts += [Text("what keeps it off the other nodes:" if found.scores else "what keeps it off:"), _groups(found)]
    if found.asked:
        parts += _asked(found)
    if found.node is None and found.one_edit_away is not None:
        count = len(found.one_edit_away)
        verb = "node is" if count == 1 else "nodes are"
        parts.append(plain(f"{count} {verb} one edit away{_examples(found.one_edit_away)}"))
    if found.preemption:
        parts.append(plain(found.preemption))
    if fixes is not None:
        parts.append(plain(fixes.text, "bold"))
        for fix in fixes.fixes:
            parts += _fix(fix)
    show(*parts)


def _headline(found: Why) -> Text:
    fits = len(found.scores)
    if found.bound_to:
        text = f" is on {found.bound_to}. If it were pending now, it would "
        if found.node is None:
            return Text.assemble(plain(found.pod, "bold"), plain(text), ("fit on no node", "red"))
        return Text.assemble(plain(found.pod, "bold"), plain(text), "go to ", plain(found.node, "bold green"))
    if found.node is None:
        return Text.assemble(plain(found.pod, "bold"), (" fits on no node: ", "red"), plain(found.message))
    text = f" fits on {fits} of {found.node_count} nodes and would go to "
    return Text.assemble(plain(found.pod, "bold"), text, plain(found.node, "bold green"))


def _best(found: Why) -> Table:
    """The scores of the best nodes, and of the node that was asked about."""
    shown = list(found.scores[:_BEST_MAX])
    shown += [each for each in found.scores[_BEST_MAX:] if each.node in (found.asked, found.bound_to)]
    names = list(shown[0].plugins)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODE", overflow="fold", vertical="top")
    for name in ("TOTAL", *("\n".join(_WORDS.split(name)) for name in names)):
        table.add_column(name, justify="right", vertical="top")
    for each in shown:
        numbers = (str(each.total), *(str(each.plugins.get(name, 0)) for name in names))
        table.add_row(plain(each.node), *numbers, style="bold green" if each.node == found.node else "")
    return table


def _groups(found: Why) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("NODES", justify="right")
    table.add_column("PLUGIN")
    table.add_column("WHY", overflow="fold")
    table.add_column("SUCH AS", overflow="fold")
    for each in found.groups:
        table.add_row(str(each.count), each.plugin, plain(each.text), plain(", ".join(each.examples)))
    return table


def _asked(found: Why) -> list[RenderableType]:
    """What keeps the pod off the node that was asked about, or its place among the scores."""
    blockers = found.blockers.get(found.asked, ())
    if not blockers:
        place = next((at for at, each in enumerate(found.scores, 1) if each.node == found.asked), None)
        text = f"It fits on {found.asked}" + (
            "" if place is None else f", which is number {place} of {len(found.scores)}"
        )
        return [plain(text)]
    texts = (f"  {each.plugin}: {each.text}{f'; {each.detail}' if each.detail else ''}" for each in blockers)
    return [plain(f"It does not fit on {found.asked}:"), *map(plain, texts)]


def _examples(names: tuple[str, ...], most: int = 3) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:most])
    return f": {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")


def _fix(fix: Fix) -> list[RenderableType]:
    """The edits in words, and as a command for each patch."""
    parts: list[RenderableType] = [
        Text.assemble(plain("  " + " and ".join(each.text for each in fix.edits)), " → ", plain(fix.node, "green"))
    ]
    for each in fix.edits:
        if each.manifest is None and each.kind is not EditKind.EVICT:
            patch = json.dumps([dict(part) for part in each.patch], separators=(",", ":"))
            parts.append(plain(f"    {each.object_kind} {each.name}: {patch}", "dim"))
    return parts
