"""Questions about what controllers and the API server derive: recorded ones, and new ones put to a real cluster."""

from __future__ import annotations

import copy
import functools
import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests import lifeline
from tests.control_plane.locate import Binaries
from tests.parity.recorded import DATA
from tests.parity.workloads.asking import Tally, answer, ask
from tests.parity.workloads.comparison import Answer, ask_podium, differences
from tests.parity.workloads.naming import Json
from tests.process_tree import descendants_of, wait_gone

ROOT = Path(__file__).parents[2]
SERVERS = 4
CATEGORIES = (
    "claim-templates",
    "daemonset",
    "defaults",
    "drain",
    "ephemeral-volumes",
    "job",
    "mixed",
    "scale-down",
    "scale-up",
    "statefulset-claims",
)
ASKED = 237
SEED, NUMBERS, COUNT = 17, (0, 7, 8, 14, 3, 9, 13, 16), 4


@functools.cache
def questions() -> tuple[Json, ...]:
    with gzip.open(DATA / "workloads-1.36.2.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


@pytest.mark.parametrize("category", CATEGORIES)
def test_podium_predicts_what_a_real_control_plane_did(category):
    tally = Tally([answer(question) for question in questions() if question["category"] == category])
    assert {result.question["id"]: result.differences for result in tally.wrong} == {}


def test_no_question_is_left_out():
    assert len(questions()) == ASKED
    assert {question["category"] for question in questions()} == set(CATEGORIES)


@pytest.fixture
def agreement(tmp_path: Path) -> tuple[Json, Answer]:
    """A question that podium answers as the real control plane did, with pods by name and pending ones."""
    question = next(question for question in questions() if question["id"] == "visible-0016-scale-up")
    answer = ask_podium(question, tmp_path)
    assert differences(question, answer) == []
    return copy.deepcopy(question), answer


def test_comparison_notices_another_node(agreement):
    question, answer = agreement
    question["expect"]["workloads"]["ops/Pod/fjord"]["nodes"] = {"n2": 1}
    question["expect"]["pods"]["ops/fjord"] = "n2"
    assert differences(question, answer) == [
        "nodes: ops/Pod/fjord: real {n2: 1}, podium {n1: 1}",
        "names: ops/fjord: real n2, podium n1",
    ]


def test_comparison_notices_another_message(agreement):
    question, answer = agreement
    question["expect"]["workloads"]["shop/StatefulSet/juniper"]["messages"][0] = "another"
    (difference,) = differences(question, answer)
    assert difference.startswith("texts: shop/StatefulSet/juniper: real ['another'], podium [")


def test_comparison_notices_another_victim(agreement):
    question, answer = agreement
    question["expect"]["preempted"] = {"ops/Pod/fjord on n1": 1}
    assert differences(question, answer) == ["preempted: real {ops/Pod/fjord on n1: 1}, podium {}"]


def test_refusal_is_right_only_for_the_reason_that_the_api_server_gives(agreement):
    question, _ = agreement
    refusal = Answer(1, "", 'Error: pods "web-" is forbidden: no PriorityClass with name nowhere was found')
    assert differences(question, refusal)[0].startswith("podium refuses: ")
    question["expect"]["workloads"] = {}
    message = 'Error creating: pods "web-x" is forbidden: no PriorityClass with name nowhere was found'
    question["expect"]["refused"] = [{"object": "ops/Job/web", "message": message}]
    assert differences(question, refusal) == []
    assert differences(question, Answer(1, "", "Error: cannot be read")) == ["podium refuses: Error: cannot be read"]


@pytest.mark.control_plane
def test_podium_predicts_what_a_real_control_plane_does_now(control_plane_binaries: Binaries) -> None:
    tally = anyio.run(lambda: ask(control_plane_binaries, SEED, iter(NUMBERS), COUNT, 1, lambda result: None))
    assert {result.question["id"]: result.differences for result in tally.wrong} == {}
    assert len(tally.results) == COUNT, tally.drop_counts


@pytest.mark.control_plane
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_generator_that_is_killed(
    control_plane_binaries: Binaries, tmp_path: Path, number: signal.Signals
) -> None:
    """Neither the servers of a control plane nor the process that asks podium."""
    arguments = ["--seed", "5", "--count", "9", "--planes", "1", "--keep", str(tmp_path)]
    command = [sys.executable, "-m", "tests.parity.workloads", *arguments]
    generator = lifeline.start(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert generator.stdout is not None
    assert generator.stdout.readline().startswith("5-0000-")
    processes = descendants_of(generator.pid)
    assert len(processes) >= SERVERS + 1
    generator.send_signal(number)
    generator.wait()
    generator.stdout.close()
    assert wait_gone(processes)
