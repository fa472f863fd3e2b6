import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.estimates import Estimates, checks, medians, questions, summary, table

PODIUM = Estimates(
    server="podium",
    claim="plain",
    nodes=5000,
    pods=100_000,
    per_s=1000.0,
    cpu_ms=0.5,
    p50_ms=1.0,
    p99_ms=4.0,
    failed=0,
    rss_mib=300.0,
    peak_rss_mib=400.0,
)
OTHER = replace(PODIUM, server="karmada", cpu_ms=6.0, p99_ms=900.0, rss_mib=600.0)


def test_each_figure_is_the_median_of_its_own_by_server_and_claim() -> None:
    rows = [PODIUM, OTHER, replace(PODIUM, claim="tainted"), replace(PODIUM, cpu_ms=0.7), replace(PODIUM, p99_ms=5.0)]
    plain, karmada, tainted = medians(rows)
    assert (plain.cpu_ms, plain.p99_ms) == (0.5, 4.0)
    assert (karmada, tainted.claim) == (OTHER, "tainted")


@pytest.mark.parametrize(
    ("podium", "met"),
    [
        (PODIUM, [True, True, True]),
        (replace(PODIUM, cpu_ms=0.61), [False, True, True]),
        (replace(PODIUM, p99_ms=10.1, rss_mib=601.0), [True, False, False]),
        (replace(PODIUM, p99_ms=0.0, failed=1000), [True, False, True]),
    ],
)
def test_podium_is_to_be_ten_times_as_cheap_prompt_and_no_larger(podium: Estimates, met: list[bool]) -> None:
    assert [check.is_met for check in checks([podium, OTHER])] == met


def test_nothing_is_judged_without_the_other_server() -> None:
    assert list(checks([PODIUM])) == []


def test_no_two_questions_of_a_kind_are_the_same() -> None:
    requirements = [str(question["requirements"]) for question in questions("tainted")]
    assert len(set(requirements)) == len(requirements)
    assert "Exists" in requirements[0]


def test_the_table_has_a_row_for_each_server_and_kind() -> None:
    output = io.StringIO()
    Console(file=output, width=180).print(table([PODIUM, OTHER]))
    rows = [line for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row.split("│")[1].strip() for row in rows] == ["podium", "karmada"]
    assert "2,000" in rows[0]


def test_a_kind_of_question_is_summed_up_in_a_line() -> None:
    assert summary(PODIUM) == "podium, plain: 0.50 ms of CPU, p99 4.0 ms at 200/s, 300 MiB"
    unanswered_load = replace(OTHER, p99_ms=0.0, failed=1000)
    assert summary(unanswered_load) == "karmada, plain: 6.00 ms of CPU, p99 - ms at 200/s, 600 MiB"
