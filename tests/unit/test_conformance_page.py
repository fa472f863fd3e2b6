"""docs/conformance.md: of this version and these recorded files, and nothing failed."""

from __future__ import annotations

import pytest

from tests.conformance.parts import PARTS
from tests.conformance.report import PAGE, Outcome, outcome_text, outcomes_of, page, read


def test_the_page_has_this_version_these_parts_and_these_files() -> None:
    assert PAGE.read_text() == page(read()), "run: python -m tests.conformance"


def test_nothing_on_the_page_failed() -> None:
    outcomes = read()
    assert [name for name, outcome in outcomes.items() if not outcome.text.startswith(("passed", "not run"))] == []
    assert all(outcome.commit for outcome in outcomes.values() if outcome.text.startswith("passed"))


def test_a_page_is_read_as_it_was_written() -> None:
    outcomes = {
        part.name: Outcome(f"passed: {number} tests", "0123abcd", "3.11.7") for number, part in enumerate(PARTS)
    }
    outcomes[PARTS[0].name] = Outcome("not run: this machine has no etcd")
    assert outcomes_of(page(outcomes)) == outcomes


@pytest.mark.parametrize(
    ("is_success", "output", "text"),
    [
        (True, "...\n== 12 passed, 1 skipped in 3.0s ==\n", "passed: 12 passed, 1 skipped in 3.0s"),
        (False, "a|b 1\n", "FAILED: a/b 1"),
        (True, "", "passed: "),
    ],
)
def test_an_outcome_has_the_numbers_of_the_last_line(is_success: bool, output: str, text: str) -> None:
    assert outcome_text(is_success, output) == text
