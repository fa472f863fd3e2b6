"""Prints the report of `podium shadow` as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import RenderableType
from rich.table import Table

from podium.cli.asking import show
from podium.cli.plain_text import plain
from podium.lib.plurals import count_of
from podium.recording.shadow.comparison import Verdict
from podium.recording.shadow.report import Disagreement, Report

_DISAGREEMENTS_MAX = 20


def print_report(report: Report) -> None:
    """Print the totals and some of the disagreements, those without an explanation first."""
    share = f" ({100 * report.agreed_count / report.compared_count:.2f} %)" if report.compared_count else ""
    parts: list[RenderableType] = [
        plain(f"{count_of(report.compared_count, 'pod')} compared, podium agrees on {report.agreed_count}{share}")
    ]
    if report.compared_count:
        parts.append(_count_table("VERDICT", ((verdict.value, report.verdicts[verdict]) for verdict in Verdict)))
    if report.reasons:
        parts.append(_count_table("REASON", ((reason.value, count) for reason, count in report.reasons.most_common())))
        parts.append(_count_table("PLUGIN", report.plugins.most_common()))
    parts += [
        plain(f"not compared, {reason}: {count_of(count, 'pod')}") for reason, count in report.not_compared.items()
    ]
    values = report.to_json()
    for name, heading in (
        ("evaluation_s", "podium's evaluation of all nodes"),
        ("binding_s", "from seen pending to bound"),
    ):
        if (quantiles := values[name]) is not None:
            parts.append(
                plain(f"{heading}: p50 {_milliseconds(quantiles['p50'])}, p99 {_milliseconds(quantiles['p99'])}")
            )
    parts += _disagreement_lines(report.disagreements)
    show(*parts)


def _count_table(heading: str, counts: Iterable[tuple[str, int]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(heading)
    table.add_column("PODS", justify="right")
    for name, count in counts:
        if count:
            table.add_row(plain(name), str(count))
    return table


def _disagreement_lines(disagreements: list[Disagreement]) -> list[RenderableType]:
    # A disagreement is explained if it has a view: a plausible cluster state in which podium agrees.
    ranking = sorted(disagreements, key=lambda disagreement: bool(disagreement.view))
    lines: list[RenderableType] = [
        plain(_disagreement_text(disagreement)) for disagreement in ranking[:_DISAGREEMENTS_MAX]
    ]
    if len(ranking) > _DISAGREEMENTS_MAX:
        lines.append(plain(f"and {len(ranking) - _DISAGREEMENTS_MAX} more"))
    return lines


def _disagreement_text(disagreement: Disagreement) -> str:
    comparison = disagreement.comparison
    plugin_text = f" by {comparison.plugin}" if comparison.plugin else ""
    if comparison.verdict is Verdict.LOWER_SCORE:
        finding = (
            f"scored {comparison.gap} less than {comparison.choice}{f', mostly{plugin_text}' if plugin_text else ''}"
        )
    else:
        reasons = "; ".join(comparison.reasons)
        finding = f"{comparison.verdict.value}{plugin_text}{f': {reasons}' if reasons else ''}"
    view = f" ({disagreement.view})" if disagreement.view else ""
    return f"{disagreement.pod} on {comparison.node}: {finding}. {disagreement.reason.value.capitalize()}{view}."


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
