"""300 questions to Karmada's scheduler: podium's answers are those of its own code."""

import gzip
import json
from pathlib import Path

from click.testing import CliRunner

from podium.cli.main import main

CASES = Path(__file__).parent / "data" / "karmada-divide-1.18.2.jsonl.gz"
# What upstream leaves to the order of a map says so, and is not compared.
NOT_ANSWERS = {"random_reason"}


def _rows():
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_recorded_question_is_answered_as_upstream_answers_it():
    result = CliRunner().invoke(main, ["divide", "--cases", str(CASES)], catch_exceptions=False)
    answers = [json.loads(line) for line in result.output.splitlines()]
    differences = [
        (row["id"], name, value, answer.get(name))
        for row, answer in zip(_rows(), answers, strict=True)
        for name, value in row["expect"].items()
        if name not in NOT_ANSWERS and answer.get(name) != value
    ]
    assert differences == []


def test_all_kinds_of_questions_are_there():
    rows = _rows()
    assert len(rows) == 300
    assert {row["expect"].get("reason") for row in rows} == {
        *("Success", "NoClusterFit", "Unschedulable", "SchedulerError"),
        None,
    }
    assert {kind for row in rows for kind in ("spec", "nodes", "service") if kind in row} == {
        "spec",
        "nodes",
        "service",
    }
