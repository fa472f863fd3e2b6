from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.cli.main import main
from podium.config import NEWEST
from tests.control_plane import catalogue
from tests.parity.configured import Verdict
from tests.parity.cross import kube_scheduler, recorder
from tests.parity.cross.__main__ import show
from tests.parity.cross.comparison import Keeping, compare_answers, compare_configurations
from tests.parity.recorded import as_json, evaluator_of

QUESTIONS = [
    {
        "id": f"lone-{number}",
        "objects": [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": 3}}}
        ],
        "pod": {"metadata": {"name": "asked"}, "spec": {"containers": []}},
        "config": None,
    }
    for number in range(2)
]
FILE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def answering(tmp_path: Path):
    """A program that answers whatever it is asked with these lines."""

    def program(answers: list[object], status: int = 0) -> Path:
        path = tmp_path / "recorder"
        text = "".join(json.dumps(answer) + "\n" for answer in answers)
        path.write_text(f"#!{sys.executable}\nimport sys\nsys.stdout.write({text!r})\nsys.exit({status})\n")
        path.chmod(0o755)
        return path

    return program


def test_same_answers_are_alike_and_nothing_is_kept(tmp_path, answering) -> None:
    evaluator = evaluator_of(NEWEST.minor)
    answers = [evaluator.answer_line(json.dumps(question).encode(), "") for question in QUESTIONS]
    kept_folder = tmp_path / "kept"
    outcome = compare_answers(QUESTIONS, answering(answers), tmp_path / "asked", Keeping(kept_folder))
    assert (outcome.question_count, outcome.alike) == (2, 2)
    assert not kept_folder.exists()


def test_another_answer_is_shown_with_a_file_that_asks_again(tmp_path, answering, capsys) -> None:
    evaluator = evaluator_of(NEWEST.minor)
    answers = [evaluator.answer_line(json.dumps(question).encode(), "") for question in QUESTIONS]
    other_answer = {**answers[1], "feasible": ["n9"]}
    outcome = compare_answers(QUESTIONS, answering([answers[0], other_answer]), tmp_path / "asked", Keeping(tmp_path))
    show("scenarios", outcome)
    question_file = tmp_path / "lone-1.jsonl"
    assert capsys.readouterr().out.splitlines() == [
        "scenarios           1 of 2 alike",
        f"  {question_file}",
        "    feasible: expected ['n9'], got ['n1']",
    ]
    assert json.loads(question_file.read_text())["expect"] == other_answer
    result = CliRunner().invoke(main, ["evaluate", str(question_file)], catch_exceptions=False)
    assert json.loads(result.output) == json.loads(json.dumps(answers[1]))


def test_order_that_upstream_leaves_to_chance_makes_no_difference(tmp_path, answering) -> None:
    requests = {"cpu": "1", "memory": "1Gi", "example.com/a": "1", "example.com/b": "1"}
    pod = {"metadata": {"name": "asked"}, "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}}
    question = {**QUESTIONS[0], "pod": pod}
    answer = as_json(evaluator_of(NEWEST.minor).answer_line(json.dumps(question).encode(), ""))
    cpu, memory, *scalars = answer["filter"]["n1"]["reasons"]
    outcomes = []
    for reasons in ([cpu, memory, *reversed(scalars)], [memory, cpu, *scalars], [*scalars, cpu, memory]):
        answer["filter"]["n1"]["reasons"] = reasons
        outcomes.append(compare_answers([question], answering([answer]), tmp_path / "asked", Keeping(tmp_path)))
    assert [outcome.alike for outcome in outcomes] == [1, 0, 0]


def test_recorder_that_ends_badly_is_noticed(tmp_path, answering) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        compare_answers([], answering([], status=1), tmp_path / "asked", Keeping(tmp_path))
    with pytest.raises(ValueError, match="shorter"):
        compare_answers(QUESTIONS, answering([]), tmp_path / "asked", Keeping(tmp_path))


def test_file_that_upstream_refuses_and_podium_does_not_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(kube_scheduler, "verdict", lambda binary, text: Verdict(None, "no"))
    outcome = compare_configurations([("configuration-1x0", FILE)], Path("kube-scheduler"), Keeping(tmp_path))
    (difference,) = outcome.differing
    assert difference.lines == ("expected an error: no",)
    assert difference.file.read_text() == FILE


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (
            'I1 ok\nE1 run.go:72] "command failed" err="profiles[0]: \\"a\\" is no name"\n',
            'profiles[0]: "a" is no name',
        ),
        ('E1 run.go:72] "command failed" err=<\n\tno kind\n >\n', "<\n\tno kind\n >"),
        ("panic: no\n", "panic: no\n"),
    ],
)
def test_error_is_read_from_the_log(log: str, error: str) -> None:
    assert kube_scheduler.error_in(log) == error


def test_source_and_modules_decide_on_the_recorder(tmp_path, monkeypatch) -> None:
    first_key = recorder.recipe().key
    for path in catalogue.GO_MODULE_DIR.rglob("*.*"):
        copy = tmp_path / path.relative_to(catalogue.GO_MODULE_DIR)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(catalogue, "GO_MODULE_DIR", tmp_path)
    assert recorder.recipe().key == first_key
    (tmp_path / "recorder" / "more.go").write_text("package main\n")
    second_key = recorder.recipe().key
    assert second_key != first_key
    (tmp_path / "go.sum").write_text("")
    assert recorder.recipe().key not in {first_key, second_key}
