import json
from pathlib import Path
from typing import Any

from tests.upstream_e2e.suite import NEEDS_KUBELET, Results, results


def spec(name: str, state: str, *, message: str = "", kind: str = "It") -> dict[str, Any]:
    return {
        "ContainerHierarchyTexts": ["Claims"],
        "LeafNodeText": name,
        "LeafNodeType": kind,
        "State": state,
        "RunTime": 2_500_000_000,
        **({"Failure": {"Message": message}} if message else {}),
    }


def results_of_report(directory: Path, *specs: dict[str, Any]) -> Results:
    report = directory / "report.json"
    report.write_text(json.dumps([{"SpecReports": specs}]))
    return results(report)


def test_specs_that_the_filters_leave_out_are_not_selected(tmp_path: Path) -> None:
    suite_results = results_of_report(
        tmp_path,
        spec("setup", "passed", kind="BeforeEach"),
        spec("left out", "skipped"),
        spec(f"{NEEDS_KUBELET} left out", "skipped"),
        spec("good", "passed"),
        spec("bad", "failed", message="\x1b[31mwhy\x1b[0m"),
        spec("skips itself", "skipped", message="no such feature"),
    )
    assert [(spec.name, spec.state, spec.message) for spec in suite_results.specs] == [
        ("Claims bad", "failed", "why"),
        ("Claims good", "passed", ""),
        ("Claims skips itself", "skipped", "no such feature"),
    ]
    assert suite_results.specs[0].seconds == 2.5
    assert suite_results.for_kubelets == (f"Claims {NEEDS_KUBELET} left out",)


def test_a_run_is_good_if_specs_ran_and_all_have_passed(tmp_path: Path) -> None:
    assert results_of_report(tmp_path, spec("good", "passed")).is_good
    assert not results_of_report(tmp_path, spec("good", "passed"), spec("bad", "failed", message="why")).is_good
    assert not results_of_report(tmp_path, spec("left out", "skipped")).is_good
