"""Scenarios of Karpenter's own test suites: podium answers as Karpenter 1.15.0's code does."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import pytest

from podium.provisioner.reports.cases import Cases
from tests.parity.karpenter.corpus import question_rows, questions, read
from tests.parity.plans import differences_of
from tests.parity.recorded import without_empty

ANSWERS = frozenset({"expect", "also"})


@functools.cache
def rows() -> list[dict[str, Any]]:
    """The lines of the file."""
    return read()


def test_every_scenario_is_answered_as_karpenter_answers_it() -> None:
    cases, differing = Cases(), []
    for row in rows():
        answer = cases.answer(row)
        if answer is not None:
            differing.extend(differences_of(row, answer))
    assert differing == []


def test_the_file_has_the_questions_as_they_are_written() -> None:
    asked_rows = [{key: value for key, value in row.items() if key not in ANSWERS} for row in rows()]
    assert asked_rows == list(question_rows(questions()))


def test_no_two_questions_are_alike() -> None:
    names = Counter(question.id for question in questions())
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) >= 200


@pytest.mark.parametrize("kind", ["solve", "consolidate"])
def test_few_answers_are_left_to_chance_or_empty(kind: str) -> None:
    own_rows = [row for row in rows() if row.get("kind") == kind]
    assert sum("also" in row for row in own_rows) < len(own_rows) / 6
    assert sum(not without_empty(row["expect"]) for row in own_rows) < len(own_rows) / 20
