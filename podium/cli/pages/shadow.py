"""The page of `podium shadow`, and of `podium replay` for a recording made beside another scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podium.cli.pages.over_time import sections_of
from podium.cli.pages.sections import Facts, Page, Section, Table, capped_table
from podium.recording.timeline import Timeline

if TYPE_CHECKING:
    from podium.recording.shadow.report import Disagreement, Report


def page_of(title: str, report: Report, timeline: Timeline, damage: str = "") -> Page:
    """Build the page.

    Args:
        damage: the reason why a recording was not read to its end.
    """
    values = report.to_json()
    share = f" ({100 * report.agreed_count / report.compared_count:.2f} %)" if report.compared_count else ""
    headline = f"{report.compared_count} pods compared, podium agrees on {report.agreed_count}{share}."
    facts = {f"not compared, {reason}": f"{count} pods" for reason, count in report.not_compared.items()}
    for name, heading in (("evaluation_s", "evaluation of all nodes"), ("binding_s", "from seen pending to bound")):
        if (quantiles := values[name]) is not None:
            facts[heading] = ", ".join(f"{quantile} {1e3 * value:.1f} ms" for quantile, value in quantiles.items())
    if damage:
        facts["not read to its end"] = damage
    # Unexplained disagreements come first.
    disagreements = sorted(report.disagreements, key=lambda disagreement: bool(disagreement.view))
    sections: list[Section] = [
        *([Facts("Comparison", facts)] if facts else []),
        *_counts("Verdicts", "Verdict", {verdict.value: count for verdict, count in report.verdicts.items()}),
        *_counts(
            "Reasons for disagreements", "Reason", {reason.value: count for reason, count in report.reasons.items()}
        ),
        *_counts("Plugins behind disagreements", "Plugin", report.plugins),
        *_disagreements(disagreements, sum(report.reasons.values())),
        *_gaps(disagreements),
        *sections_of(timeline),
    ]
    return Page(title, headline, sections, timeline.times_s, timeline.started_s)


def _counts(title: str, column: str, counts: dict[str, int] | Counter[str]) -> Iterable[Table]:
    rows = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [Table(title, (column, "Pods"), rows)] if rows else []


def _disagreements(disagreements: list[Disagreement], count: int) -> Iterable[Table]:
    if not disagreements:
        return []
    rows = []
    for disagreement in disagreements:
        comparison = disagreement.comparison
        reason = f"{disagreement.reason.value}{f': {disagreement.view}' if disagreement.view else ''}"
        verdict = f"{comparison.verdict.value}{f': {text}' if (text := '; '.join(comparison.reasons)) else ''}"
        rows.append(
            (
                disagreement.pod,
                comparison.node,
                comparison.choice,
                verdict,
                comparison.gap or None,
                comparison.plugin,
                reason,
            )
        )
    columns = ("Pod", "Chosen", "podium", "Verdict", "Gap", "Plugin", "Reason")
    note = f"Of {count} disagreements, the first {len(disagreements)} are kept." if count > len(disagreements) else ""
    return [capped_table("Disagreements", columns, rows, note)]


def _gaps(disagreements: list[Disagreement]) -> Iterable[Table]:
    """Tabulate each plugin's score of podium's choice, less that of the chosen node."""
    scored_disagreements = [disagreement for disagreement in disagreements if disagreement.comparison.by_plugin]
    if not scored_disagreements:
        return []
    plugins = list(
        dict.fromkeys(name for disagreement in scored_disagreements for name in disagreement.comparison.by_plugin)
    )
    rows: list[tuple[Any, ...]] = [
        (
            disagreement.pod,
            disagreement.comparison.score,
            disagreement.comparison.best_score,
            *(disagreement.comparison.by_plugin.get(name, 0) for name in plugins),
        )
        for disagreement in scored_disagreements
    ]
    note = "What each plugin gives to podium's choice, less what it gives to the chosen node."
    return [capped_table("Scores of the disagreements", ("Pod", "Score", "podium's score", *plugins), rows, note)]
