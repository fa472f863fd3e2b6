from pathlib import Path

from tests.skew.results import Result, read_result, table

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest">
  <testcase name="good"/><testcase name="also good"><system-out>text</system-out></testcase>
  <testcase name="bad"><failure message="no"/></testcase>
  <testcase name="bad twice"><failure message="no"/><error message="at teardown"/></testcase>
  <testcase name="left out"><skipped message="why"/></testcase>
</testsuite></testsuites>
"""


def test_a_report_is_counted_by_test(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_result(tmp_path / "report.xml") == Result(passes=2, failures=2, skips=1)


def test_without_a_report_nothing_ran(tmp_path: Path) -> None:
    result = read_result(tmp_path / "report.xml")
    assert (str(result), result.is_good) == ("nothing ran", False)


def test_only_tests_that_passed_are_good() -> None:
    assert Result(passes=3, skips=1).is_good
    assert not Result(passes=3, failures=1).is_good
    assert not Result(skips=3).is_good


def test_the_table_has_a_row_for_each_topic_and_a_column_for_each_version() -> None:
    results = {
        "1.33.13": {"volumes": Result(6), "preemption": Result(7, 1)},
        "1.36.2": {"volumes": Result(6), "preemption": Result()},
    }
    assert table(results, ["volumes", "preemption"]).splitlines() == [
        "            1.33.13             1.36.2",
        "volumes     6 passed            6 passed",
        "preemption  7 passed, 1 failed  nothing ran",
    ]
