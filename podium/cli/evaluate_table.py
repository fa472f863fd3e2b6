"""Prints the answer about one pod as text: feasible nodes with their scores, the others with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rich import box
from rich.table import Table
from rich.text import Text

from podium.cli.plain_text import PlainConsole, console, heading, plain
from podium.engine.rejection_details import asked_and_free
from podium.framework.cycle.scoring import Scores
from podium.insight.evaluate import PodAnswer
from podium.lib.plurals import count_of
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.taint_toleration import DETAIL_PREFIX

_NAMES_MAX = 3
_DETAILS_MAX = 3


@dataclass(frozen=True, slots=True)
class _Row:
    """Nodes with the same verdict: the columns beside them, the details that differ, and the amounts that are short."""

    nodes: tuple[str, ...]
    cells: tuple[str, ...]
    details: tuple[str, ...] = ()
    style: str = ""
    amounts: str = ""

    def texts(self) -> list[Text]:
        """Return the text of each column."""
        remaining_count = len(self.nodes) - _NAMES_MAX
        names = ", ".join(self.nodes[:_NAMES_MAX]) + (f" and {remaining_count:,} more" if remaining_count > 0 else "")
        kinds = Counter(filter(None, self.details))
        details = "; ".join(detail for detail, _ in kinds.most_common(_DETAILS_MAX))
        others_text = f"; and {len(kinds) - _DETAILS_MAX:,} others" if len(kinds) > _DETAILS_MAX else ""
        *cells, last = self.cells
        last += f": {self.amounts}" if self.amounts else ""
        return [plain(text) for text in (names, *cells, f"{last} ({details}{others_text})" if details else last)]


def print_table(answer: PodAnswer, top: int | None) -> None:
    """Print to standard output. Output to a pipe is not cut to the width of a terminal.

    Args:
        top: the number of rows that a table may have: with more nodes, those with equal verdicts share a row. None
            gives every node a row.
    """
    out = console()
    scores = answer.evaluation.found.scores
    if scores is not None:
        table = _table("NODE", "TOTAL", *map(heading, scores.plugins), numbers=True)
        _print_rows(out, table, _group_rows(_fitting(answer, scores), top), top)
    rejected_rows = _group_rows(_rejected_rows(answer), top)
    if rejected_rows:
        # The verdict on most nodes first: that is what keeps the pod off.
        rejected_rows.sort(key=lambda row: -len(row.nodes))
        # Only for rows that are shown, because amounts are looked up node by node.
        rejected_rows[:top] = [_with_amounts(answer, row) for row in rejected_rows[:top]]
        _print_rows(out, _table("NODE", "DOES NOT FIT", "WHY"), rejected_rows, top)
    out.print(verdict(answer))
    for gate in answer.gates:
        out.print(plain(f"But it would not be tried yet: {gate.message} ({gate.plugin})", "yellow"))


def _group_rows(rows: list[_Row], top: int | None) -> list[_Row]:
    """Return few rows unchanged, but of many rows one for all nodes with the same verdict."""
    if top is None or len(rows) <= top:
        return rows
    by_verdict: dict[tuple[tuple[str, ...], str], list[_Row]] = {}
    for row in rows:
        by_verdict.setdefault((row.cells, row.style), []).append(row)
    return [
        # Amounts are of the joined rows, and are added later.
        _Row(tuple(chain(*(row.nodes for row in alike))), cells, tuple(chain(*(row.details for row in alike))), style)
        for (cells, style), alike in by_verdict.items()
    ]


def _print_rows(out: PlainConsole, table: Table, rows: Sequence[_Row], top: int | None) -> None:
    """Print as many rows as the table may have, and the number of nodes on the others."""
    for row in rows[:top]:
        table.add_row(*row.texts(), style=row.style)
    out.print(table)
    if top is not None and len(rows) > top:
        nodes, row_count = sum(len(row.nodes) for row in rows[top:]), len(rows) - top
        left_out = f"and {count_of(nodes, 'more node')} on {count_of(row_count, 'more row')}"
        out.print(plain(f"{left_out}: --all shows every node"))


def verdict(answer: PodAnswer) -> Text:
    """Name the node to which the pod would be bound, or the reason why no node fits, in one sentence."""
    evaluation, name = answer.evaluation.found, plain(answer.pod.key, "bold")
    if evaluation.scores is not None:
        total = int(evaluation.scores.total.max())
        fits = (
            f"fits on {len(evaluation.filter_result.rows)} of {len(answer.evaluation.snapshot)} nodes and would go to "
        )
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
    """List the feasible nodes, the best first."""
    evaluation, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    rows = evaluation.filter_result.rows.tolist()
    totals = scores.total.tolist()
    by_plugin = [scores_of_plugin.tolist() for scores_of_plugin in scores.plugins.values()]
    first = evaluation.winner
    # The winner first: among equal scores it is not the first by name.
    order = sorted(
        range(len(rows)), key=lambda index: (rows[index] != first, -totals[index], snapshot.name(rows[index]))
    )
    return [
        _Row(
            (snapshot.name(rows[at]),),
            (str(totals[at]), *(str(part[at]) for part in by_plugin)),
            style="bold green" if rows[at] == first else "",
        )
        for at in order
    ]


def _rejected_rows(answer: PodAnswer) -> list[_Row]:
    """List the nodes that a plugin rejected, sorted by name."""
    evaluation, snapshot = answer.evaluation.found, answer.evaluation.snapshot
    statuses = {snapshot.name(row): status for row, status in evaluation.diagnosis.statuses().items()}
    details = {snapshot.name(row): detail for row, detail in answer.details.items()}
    fitting = {snapshot.name(row) for row in evaluation.filter_result.rows.tolist()}
    # PreFilter rejected the other nodes without a status for each of them.
    if evaluation.filter_result.rejection is None:
        for row in snapshot.order.tolist():
            if (name := snapshot.name(row)) not in fitting:
                statuses.setdefault(name, evaluation.diagnosis.absent)
    return [
        _Row((name,), (status.plugin, status.message), (details.get(name, "").removeprefix(DETAIL_PREFIX),))
        for name, status in sorted(statuses.items())
    ]


def _with_amounts(answer: PodAnswer, row: _Row) -> _Row:
    """Return the row with what the pod requests and the most that is free, if its nodes have too little."""
    if row.cells[0] != NodeResourcesFit.name:
        return row
    snapshot = answer.evaluation.snapshot
    amounts = asked_and_free(answer.pod, snapshot, [snapshot.row_of[name] for name in row.nodes])
    return replace(row, amounts=amounts)


def _table(*headings: str | Text, numbers: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, title in enumerate(headings):
        is_number = numbers and index > 0
        table.add_column(title, justify="right" if is_number else "left", vertical="top", overflow="fold")
    return table
