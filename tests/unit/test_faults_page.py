"""docs/faults.md names tests: every one of them is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "faults.md"
SHORT = {"int": "integration", "unit": "unit", "e2e": "e2e"}
_NAMES = re.compile(r"`(\w+)`")


def rules() -> list[str]:
    """The rows of the table of rules."""
    table = PAGE.read_text().partition("## The rules")[2]
    return [row for row in table.splitlines() if row.startswith("| ") and "---" not in row][1:]


def shown_by(row: str) -> Iterator[tuple[Path, list[str]]]:
    """Each file that the last column names, and what the names of tests begin with."""
    for each in row.split("|")[-2].split(";"):
        words = each.split()
        place, *rest = words[0].rstrip(",").split("/")
        yield TESTS.joinpath(SHORT[place], *rest[:-1], f"test_{rest[-1]}.py"), _NAMES.findall(each)


@pytest.mark.parametrize("row", rules(), ids=lambda row: row[2:50])
def test_the_tests_that_show_a_rule_are_there(row: str) -> None:
    files = list(shown_by(row))
    assert files
    for file, names in files:
        text = file.read_text()
        missing = [name for name in names if f"def test_{name}" not in text]
        assert not missing, f"{file}: {missing}"


def test_the_table_is_not_empty() -> None:
    assert len(rules()) > 30
