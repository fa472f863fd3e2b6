"""The answer about one pod as text for people: feasible nodes with their scores, the others with the reasons."""

from __future__ import annotations

import re

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import plain
from podium.evaluate import PodAnswer
from podium.framework.cycle.scoring import Scores

_WIDTH_PIPED = 200
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def print_table(answer: PodAnswer) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH_PIPED)
    if answer.evaluation.found.scores is not None:
        console.print(_fitting(answer, answer.evaluation.found.scores))
    rejected = _rejected(answer)
    if rejected.row_count:
        console.print(rejected)
    console.print(verdict(answer))
    for gate in answer.gates:
        console.print(plain(f"But it would not be tried yet: {gate.message} ({gate.plugin})", "yellow"))


def verdict(answer: PodAnswer) -> Text:
    """One sentence that names the node that the pod would be bound to, or the reason why none fits."""
    found, name = answer.evaluation.found, plain(answer.pod.key, "bold")
    if found.scores is not None:
        total = int(found.scores.total.max())
        fits = f"fits on {len(found.filtered.rows)} of {len(answer.evaluation.snapshot)} nodes and would go to "
        return Text.assemble(name, f" {fits}", plain(answer.evaluation.node or "", "bold green"), f" (total {total})")
    as_json = answer.to_json()
    parts = [Text.assemble(name, (" fits on no node: ", "red"), plain(as_json["message"]))]
    if as_json.get("nominated"):
        victims = ", ".join(as_json["victims"])
        parts.append(
            Text.assemble(
                "It would be nominated to ", plain(as_json["nominated"], "bold"), plain(f" after {victims} left")
            )
        )
    return Text("\n").join(parts)


def _fitting(answer: PodAnswer, scores: Scores) -> Table:
    """The feasible nodes, the best first."""
    table = _table("NODE", "TOTAL", *("\n".join(_WORDS.split(name)) for name in scores.plugins), numbers=True)
    found, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    rows = found.filtered.rows.tolist()
    totals = scores.total.tolist()
    by_plugin = [each.tolist() for each in scores.plugins.values()]
    first = found.winner
    for at in sorted(range(len(rows)), key=lambda at: (rows[at] != first, -totals[at], snapshot.name(rows[at]))):
        numbers = [str(totals[at]), *(str(part[at]) for part in by_plugin)]
        table.add_row(plain(snapshot.name(rows[at])), *numbers, style="bold green" if rows[at] == first else "")
    return table


def _rejected(answer: PodAnswer) -> Table:
    """The nodes that a plugin rejected, sorted by name."""
    table = _table("NODE", "DOES NOT FIT", "WHY")
    found, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    statuses = {snapshot.name(row): status for row, status in found.diagnosis.statuses().items()}
    details = {snapshot.name(row): detail for row, detail in answer.details.items()}
    fitting = {snapshot.name(row) for row in found.filtered.rows.tolist()}
    if found.filtered.rejected is None:
        for row in snapshot.order.tolist():
            if (name := snapshot.name(row)) not in fitting:
                statuses.setdefault(name, found.diagnosis.absent)
    for name in sorted(statuses):
        status = statuses[name]
        detail = f" ({details[name]})" if name in details else ""
        table.add_row(plain(name), status.plugin, plain(f"{status.message}{detail}"))
    return table


def _table(*headings: str, numbers: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        is_number = numbers and index > 0
        table.add_column(heading, justify="right" if is_number else "left", vertical="top", overflow="fold")
    return table
