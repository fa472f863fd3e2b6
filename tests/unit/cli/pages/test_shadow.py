"""The page of a shadow: agreement, and every disagreement with its scores."""

from __future__ import annotations

from podium.cli.pages.sections import ROWS_MAX, Table
from podium.cli.pages.shadow import page_of
from podium.recording.shadow.comparison import Comparison, Verdict
from podium.recording.shadow.report import Disagreement, Reason, Report
from tests.unit.cli.pages.test_over_time import TIMELINE


def shadow_report(count: int) -> Report:
    report = Report()
    report.verdicts[Verdict.SAME_NODE] = 5
    for at in range(count):
        lower = Comparison(Verdict.LOWER_SCORE, "n1", "n2", 60, 90, {"Fit": 40, "Spread": -10}, "Fit", feasible=3)
        report.verdicts[Verdict.LOWER_SCORE] += 1
        report.add(Disagreement(f"default/web-{at}", "podium", lower, Reason.STALE_VIEW, "Pod a bound to n2"))
    refusal = Comparison(Verdict.REFUSED, "n1", None, plugin="Taints", reasons=("tainted",))
    report.verdicts[Verdict.REFUSED] += 1
    report.add(Disagreement("default/odd", "podium", refusal, Reason.UNEXPLAINED))
    return report


def tables(count: int) -> dict[str, Table]:
    page = page_of("shadow", shadow_report(count), TIMELINE, "cut off")
    assert page.headline.startswith(f"{count + 6} pods compared, podium agrees on 5")
    return {section.title: section for section in page.sections if isinstance(section, Table)}


def test_disagreements_are_shown_and_the_unexplained_first() -> None:
    table_by_title = tables(1)
    assert table_by_title["Verdicts"].rows == [("same node", 5), ("lower score", 1), ("refused", 1)]
    assert table_by_title["Disagreements"].rows == [
        ("default/odd", "n1", None, "refused: tainted", None, "Taints", "unexplained"),
        ("default/web-0", "n1", "n2", "lower score", 30, "Fit", "stale view: Pod a bound to n2"),
    ]
    scores = table_by_title["Scores of the disagreements"]
    assert scores.columns == ("Pod", "Score", "podium's score", "Fit", "Spread")
    assert scores.rows == [("default/web-0", 60, 90, 40, -10)]


def test_what_is_left_out_is_said() -> None:
    disagreements = tables(1500)["Disagreements"]
    assert len(disagreements.rows) == ROWS_MAX
    assert disagreements.note == "Of 1501 disagreements, the first 1000 are kept. 500 more are left out."


def test_report_of_nothing_is_a_page() -> None:
    page = page_of("shadow", Report(), TIMELINE)
    assert page.headline == "0 pods compared, podium agrees on 0."
