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
    """The rows of the tables of rules."""
    return [
        row
        for culprit in culprits().values()
        for row in culprit.splitlines()
        if row.startswith("| ") and not row.startswith("| fault |")
    ]


def culprits() -> dict[str, str]:
    """What the page says of each that may misbehave."""
    sections = PAGE.read_text().partition("## Who misbehaves")[2].split("\n### ")[1:]
    return {heading: text for heading, _, text in (section.partition("\n") for section in sections)}


def shown_by(row: str) -> Iterator[tuple[Path, list[str]]]:
    """Each file that the last column names, and what the names of tests begin with."""
    for reference in row.split("|")[-2].split(";"):
        words = reference.split()
        place, *parts = words[0].rstrip(",").split("/")
        yield TESTS.joinpath(SHORT[place], *parts[:-1], f"test_{parts[-1]}.py"), _NAMES.findall(reference)


@pytest.mark.parametrize("row", rules(), ids=lambda row: row[2:50])
def test_the_tests_that_show_a_rule_are_there(row: str) -> None:
    files = list(shown_by(row))
    assert files
    for file, names in files:
        text = file.read_text()
        missing = [name for name in names if f"def test_{name}" not in text]
        assert not missing, f"{file}: {missing}"


@pytest.mark.parametrize(
    "culprit",
    [
        "API server",
        "Watch",
        "etcd",
        "Extenders",
        "Webhooks",
        "Plugins",
        "Clock",
        "Disk",
        "Log",
        "Certificates",
        "Neighbours",
        "Objects",
    ],
)
def test_each_that_may_misbehave_has_its_table(culprit: str) -> None:
    (text,) = [text for heading, text in culprits().items() if heading.startswith(culprit)]
    assert [row for row in text.splitlines() if row.startswith("| ")][1:]
