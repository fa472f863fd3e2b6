"""The page of `podium shadow`, and of `podium replay` for a recording made beside another scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podium.cli.pages.over_time import sections_of
from podium.cli.pages.sections import Facts, Page, Section, Table, capped
from podium.recording.timeline import Timeline

if TYPE_CHECKING:
    from podium.recording.shadow.report import Disagreement, Report


def page_of(title: str, report: Report, timeline: Timeline, damage: str = "") -> Page:
    """What it shows.

    Args:
        damage: why a recording was not read to its end.
    """
    said = report.to_json()
    share = f" ({100 * report.agreed_count / report.compared_count:.2f} %)" if report.compared_count else ""
    headline = f"{report.compared_count} pods compared, podium agrees on {report.agreed_count}{share}."
    facts = {f"not compared, {why}": f"{count} pods" for why, count in report.not_compared.items()}
    for name, what in (("evaluation_s", "evaluation of all nodes"), ("binding_s", "from seen pending to bound")):
        if (quantiles := said[name]) is not None:
            facts[what] = ", ".join(f"{quantile} {1e3 * value:.1f} ms" for quantile, value in quantiles.items())
    if damage:
        facts["not read to its end"] = damage
    # What nothing explains comes first.
    ordered = sorted(report.disagreements, key=lambda each: bool(each.view))
    sections: list[Section] = [
        *([Facts("Comparison", facts)] if facts else []),
        *_counts("Verdicts", "Verdict", {each.value: count for each, count in report.verdicts.items()}),
        *_counts("Reasons for disagreements", "Reason", {each.value: count for each, count in report.reasons.items()}),
        *_counts("Plugins behind disagreements", "Plugin", report.plugins),
        *_disagreements(ordered, sum(report.reasons.values())),
        *_gaps(ordered),
        *sections_of(timeline),
    ]
    return Page(title, headline, sections, timeline.times_s, timeline.started_s)


def _counts(title: str, column: str, counts: dict[str, int] | Counter[str]) -> Iterable[Table]:
    rows = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [Table(title, (column, "Pods"), rows)] if rows else []


def _disagreements(found: list[Disagreement], count: int) -> Iterable[Table]:
    if not found:
        return []
    rows = []
    for each in found:
        of = each.comparison
        why = f"{each.reason.value}{f': {each.view}' if each.view else ''}"
        verdict = f"{of.verdict.value}{f': {text}' if (text := '; '.join(of.reasons)) else ''}"
        rows.append((each.pod, of.node, of.choice, verdict, of.gap or None, of.plugin, why))
    columns = ("Pod", "Chosen", "podium", "Verdict", "Gap", "Plugin", "Reason")
    note = f"Of {count} disagreements, the first {len(found)} are kept." if count > len(found) else ""
    return [capped("Disagreements", columns, rows, note)]


def _gaps(found: list[Disagreement]) -> Iterable[Table]:
    """How much more each plugin gives to podium's choice."""
    scored = [each for each in found if each.comparison.by_plugin]
    if not scored:
        return []
    plugins = list(dict.fromkeys(name for each in scored for name in each.comparison.by_plugin))
    rows: list[tuple[Any, ...]] = [
        (
            each.pod,
            each.comparison.score,
            each.comparison.best_score,
            *(each.comparison.by_plugin.get(name, 0) for name in plugins),
        )
        for each in scored
    ]
    note = "What each plugin gives to podium's choice, less what it gives to the chosen node."
    return [capped("Scores of the disagreements", ("Pod", "Score", "podium's score", *plugins), rows, note)]
