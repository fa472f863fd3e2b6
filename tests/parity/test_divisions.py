"""300 questions to Karmada's scheduler: podium's answers are those of its own code."""

import json

import pytest
from click.testing import CliRunner

from podium.cli.main import main
from tests.parity.divisions import CASES, category, differences, rows

ROWS = rows()


@pytest.mark.parametrize("kind", sorted({category(row) for row in ROWS}))
def test_every_recorded_question_is_answered_as_upstream_answers_it(kind):
    assert [(row["id"], *part) for row in ROWS if category(row) == kind for part in differences(row)] == []


def test_command_answers_every_line():
    result = CliRunner().invoke(main, ["divide", "--cases", str(CASES)], catch_exceptions=False)
    answers = [json.loads(line) for line in result.output.splitlines()]
    assert [answer["id"] for answer in answers] == [row["id"] for row in ROWS]
    assert answers[0]["clusters"] == ROWS[0]["expect"]["clusters"]


def test_all_kinds_of_questions_are_there():
    assert len(ROWS) == 300
    reasons = {row["expect"].get("reason") for row in ROWS}
    assert reasons == {"Success", "NoClusterFit", "Unschedulable", "SchedulerError", None}
    assert {kind for row in ROWS for kind in ("spec", "nodes", "service") if kind in row} == {
        "spec",
        "nodes",
        "service",
    }
