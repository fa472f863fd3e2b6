"""300 questions to member clusters: podium's answers are those of Karmada's own estimators."""

import gzip
import json
from pathlib import Path

from click.testing import CliRunner

from podium.cli.main import main

CASES = Path(__file__).parent / "data" / "karmada-estimates.jsonl.gz"


def _rows():
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_recorded_question_is_answered_as_upstream_answers_it():
    result = CliRunner().invoke(main, ["estimate", "--cases", str(CASES)], catch_exceptions=False)
    answers = [json.loads(line) for line in result.output.splitlines()]
    expected_answers = [{"id": row["id"], **row["expect"]} for row in _rows()]
    assert [pair for pair in zip(expected_answers, answers, strict=True) if pair[0] != pair[1]] == []


def test_all_kinds_of_questions_are_there():
    kinds = [next(iter(row["expect"])) for row in _rows()]
    assert len(kinds) == 300
    assert {"sets", "unschedulable", "error"} < set(kinds)
