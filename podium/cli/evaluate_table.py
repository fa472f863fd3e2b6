"""The answer about one pod as text for people: feasible nodes with their scores, the others with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import PlainConsole, console, heading, plain
from podium.framework.cycle.scoring import Scores
from podium.insight.evaluate import PodAnswer

_NAMES_MAX = 3
_DETAILS_MAX = 3


@dataclass(frozen=True, slots=True)
class _Row:
    """Nodes with the same verdict: the columns beside them, and what differs between them."""

    nodes: tuple[str, ...]
    cells: tuple[str, ...]
    details: tuple[str, ...] = ()
    style: str = ""

    def texts(self) -> list[Text]:
        """The text of each column."""
        more = len(self.nodes) - _NAMES_MAX
        names = ", ".join(self.nodes[:_NAMES_MAX]) + (f" and {more:,} more" if more > 0 else "")
        kinds = Counter(filter(None, self.details))
        shown = "; ".join(detail for detail, _ in kinds.most_common(_DETAILS_MAX))
        others = f"; and {len(kinds) - _DETAILS_MAX:,} others" if len(kinds) > _DETAILS_MAX else ""
        *cells, last = self.cells
        return [plain(text) for text in (names, *cells, f"{last} ({shown}{others})" if shown else last)]


def print_table(answer: PodAnswer, top: int | None) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal.

    Args:
        top: how many rows a table may have: if it has more nodes, those with equal verdicts share a row. None gives
            every node a row.
    """
    out = console()
    scores = answer.evaluation.found.scores
    if scores is not None:
        table = _table("NODE", "TOTAL", *map(heading, scores.plugins), numbers=True)
        _print_rows(out, table, _grouped(_fitting(answer, scores), top), top)
    rejected = _grouped(_rejected(answer), top)
    if rejected:
        rejected.sort(key=lambda row: -len(row.nodes))
        _print_rows(out, _table("NODE", "DOES NOT FIT", "WHY"), rejected, top)
    out.print(verdict(answer))
    for gate in answer.gates:
        out.print(plain(f"But it would not be tried yet: {gate.message} ({gate.plugin})", "yellow"))


def _grouped(rows: list[_Row], top: int | None) -> list[_Row]:
    """The rows as they are if they are few, otherwise one row for all nodes with the same verdict."""
    if top is None or len(rows) <= top:
        return rows
    by_verdict: dict[tuple[tuple[str, ...], str], list[_Row]] = {}
    for row in rows:
        by_verdict.setdefault((row.cells, row.style), []).append(row)
    return [
        _Row(tuple(chain(*(row.nodes for row in alike))), cells, tuple(chain(*(row.details for row in alike))), style)
        for (cells, style), alike in by_verdict.items()
    ]


def _print_rows(out: PlainConsole, table: Table, rows: Sequence[_Row], top: int | None) -> None:
    """Print as many rows as the table may have, and how many nodes are on the others."""
    for row in rows[:top]:
        table.add_row(*row.texts(), style=row.style)
    out.print(table)
    if top is not None and len(rows) > top:
        nodes, more = sum(len(row.nodes) for row in rows[top:]), len(rows) - top
        left_out = f"and {nodes:,} more node{'s' * (nodes != 1)} on {more:,} more row{'s' * (more != 1)}"
        out.print(plain(f"{left_out}: --all shows every node"))


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


def _fitting(answer: PodAnswer, scores: Scores) -> list[_Row]:
    """The feasible nodes, the best first."""
    found, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    rows = found.filtered.rows.tolist()
    totals = scores.total.tolist()
    by_plugin = [each.tolist() for each in scores.plugins.values()]
    first = found.winner
    order = sorted(range(len(rows)), key=lambda at: (rows[at] != first, -totals[at], snapshot.name(rows[at])))
    return [
        _Row(
            (snapshot.name(rows[at]),),
            (str(totals[at]), *(str(part[at]) for part in by_plugin)),
            style="bold green" if rows[at] == first else "",
        )
        for at in order
    ]


def _rejected(answer: PodAnswer) -> list[_Row]:
    """The nodes that a plugin rejected, sorted by name."""
    found, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    statuses = {snapshot.name(row): status for row, status in found.diagnosis.statuses().items()}
    details = {snapshot.name(row): detail for row, detail in answer.details.items()}
    fitting = {snapshot.name(row) for row in found.filtered.rows.tolist()}
    if found.filtered.rejected is None:
        for row in snapshot.order.tolist():
            if (name := snapshot.name(row)) not in fitting:
                statuses.setdefault(name, found.diagnosis.absent)
    return [
        _Row((name,), (status.plugin, status.message), (details.get(name, ""),))
        for name, status in sorted(statuses.items())
    ]


def _table(*headings: str | Text, numbers: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, title in enumerate(headings):
        is_number = numbers and index > 0
        table.add_column(title, justify="right" if is_number else "left", vertical="top", overflow="fold")
    return table
