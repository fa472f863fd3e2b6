import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.measure import StallError
from benchmarks.provisioning import KARPENTER, Planned, Question, checks, measure, medians, notes, plan_of, table

PODIUM = Planned("podium", "diverse", 2_000, 400, 700.0, 0, 0, 1.0, 1.0, 60.0)
OTHER = Planned("karpenter", "diverse", 2_000, 400, 704.0, 0, 0, 3.9, 4.0, 90.0)


def answer_text(**changes: float) -> str:
    answer = {"claims": 2, "price": 1.5, "on_claims": 6, "on_nodes": 3, "errors": 1}
    return json.dumps({**answer, "wall_s": 0.5, "cpu_s": 0.6, "peak_rss_bytes": 64 << 20, **changes})


def karpenter(directory: Path, text: str, code: int = 0) -> Path:
    """A stand-in for the program around Karpenter."""
    path = directory / "planner"
    path.write_text(f"#!/bin/sh\ntest -f \"$1\" && echo '{text}'\necho broken >&2\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.long
def test_both_planners_answer_the_same_file_in_turn_and_podium_alone_the_largest(tmp_path: Path) -> None:
    small, large = Question("small", 10, pools=2, nodes=1), Question("large", 15, is_compared=False)
    planner = karpenter(tmp_path, answer_text())
    plans = [
        plan for question, repeat in ((small, 2), (large, 1)) for plan in measure([question], repeat, planner, print)
    ]
    names = [(plan.planner, plan.name) for plan in plans]
    assert names == [(name, "small") for name in ("podium", KARPENTER, KARPENTER, "podium")] + [("podium", "large")]
    podium, karpenters = plans[:2]
    assert karpenters == Planned(KARPENTER, "small", 10, 2, 1.5, 3, 1, 0.5, 0.6, 64.0)
    assert (podium.errors, podium.on_nodes > 0, podium.claims > 0, podium.cpu_s > 0) == (0, True, True, True)


@pytest.mark.long
def test_a_planner_that_fails_or_loses_pods_ends_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(StallError, match="broken"):
        list(measure([Question("small", 10)], 1, karpenter(tmp_path, answer_text(), code=1), lambda _: None))
    with pytest.raises(StallError, match="karpenter says where 9 pods go, of 10"):
        plan_of(KARPENTER, Question("small", 10), answer_text(on_claims=5))


def test_the_table_shows_the_ratio_under_both() -> None:
    output = io.StringIO()
    Console(file=output, width=200).print(table(medians([PODIUM, OTHER, replace(PODIUM, pods=20_000)])))
    cells = [line.replace(" ", "").split("│")[1:-1] for line in output.getvalue().splitlines() if "│" in line]
    assert [cell[2] for cell in cells] == ["podium", "karpenter", "ratio", "podium"]
    assert cells[2] == ["", "", "ratio", "", "", "", "", "0.26×", "0.25×", "", "0.67×"]


def test_plans_are_held_against_karpenter_and_their_growth_against_the_target() -> None:
    large_plan = replace(PODIUM, pods=20_000, cpu_s=12.0, wall_s=19.0)
    assert [check.is_met for check in checks([PODIUM, OTHER, large_plan])] == [True] * 4
    slow, large = replace(PODIUM, cpu_s=2.1, peak_rss_mib=91.0), replace(large_plan, cpu_s=28.0, wall_s=21.0)
    assert [check.is_met for check in checks([slow, OTHER, large])] == [False, False, False, False]
    assert not list(checks([PODIUM]))


def test_plans_that_differ_are_named_with_what_karpenter_says_from_run_to_run() -> None:
    assert not list(notes([PODIUM, replace(OTHER, price=700.0)]))
    assert list(notes([PODIUM, OTHER, replace(OTHER, price=706.5), replace(PODIUM, pods=20_000)])) == [
        "diverse, 2,000 pods: dollars per hour: podium 700.0, Karpenter 704.0 to 706.5"
    ]
    assert list(notes([PODIUM, replace(OTHER, claims=401, price=700.0)])) == [
        "diverse, 2,000 pods: nodes to buy: podium 400, Karpenter 401"
    ]
