"""Control-C ends a command at once, whatever a plugin is doing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import PODIUM, Start
from tests.manifests import node, pod
from tests.patience import PATIENCE_S

INTERRUPTED = Path(__file__).with_name("interrupted.py")
_HANGS = """
import sys
from podium.framework import FilterPlugin

class Hangs(FilterPlugin):
    def filter(self, state, pod, node):
        print("here", file=sys.stderr, flush=True)
        while True:
            pass
"""
_CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "110"}}
"""
_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: a, image: x}]}
"""
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Hangs}]}}}]
"""


def test_control_c_ends_evaluate_inside_a_plugin_that_never_returns(tmp_path: Path) -> None:
    for name, text in {"hangs.py": _HANGS, "c.yaml": _CLUSTER, "pod.yaml": _POD, "config.yaml": _CONFIG}.items():
        (tmp_path / name).write_text(text)
    question = ["evaluate", "-f", "c.yaml", "--pod", "pod.yaml", "--config", "config.yaml"]
    command = [*PODIUM, *question, "--plugin", "hangs.py:Hangs"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == -signal.SIGINT


@pytest.mark.parametrize(
    "question",
    [
        ["capacity", "-f", "c.yaml", "--pod", "pod.yaml"],
        ["why", "web", "-f", "c.yaml", "-f", "pod.yaml", "--fix"],
        ["what-if", "-f", "c.yaml", "-f", "pod.yaml", "--add-nodes", "1", "--like", "n1"],
    ],
    ids=lambda question: question[0],
)
def test_control_c_ends_a_question_with_130_and_nothing_printed(
    question: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    for name, text in {"hangs.py": _HANGS, "c.yaml": _CLUSTER, "pod.yaml": _POD, "config.yaml": _CONFIG}.items():
        (tmp_path / name).write_text(text)
    command = [*PODIUM, *question, "--config", "config.yaml", "--plugin", "hangs.py:Hangs"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert process.stderr.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert (process.wait(PATIENCE_S), process.stdout.read()) == (130, b"")


@pytest.mark.parametrize(
    ("question", "modules"),
    [
        (["why", "web", "-f", "c.yaml", "-f", "pod.yaml", "--fix"], ["podium.cli.why", "podium.insight.search"]),
        (["why", "web", "-f", "c.yaml", "-f", "pod.yaml"], ["podium.cli.why_table"]),
        (["why", "web", "--url", "http://127.0.0.1:9"], ["aiohttp"]),
        (["capacity", "-f", "c.yaml", "--pod", "pod.yaml"], ["podium.cli.capacity", "podium.cli.capacity_table"]),
        (["what-if", "-f", "c.yaml", "--drain", "n1"], ["podium.cli.what_if", "podium.cli.what_if_table"]),
    ],
    ids=["fix", "why", "url", "capacity", "what-if"],
)
def test_control_c_ends_a_question_with_130_wherever_it_is(
    question: list[str], modules: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    """While it begins, while it finds the answer, and right before it prints it."""
    for name, text in {"c.yaml": _CLUSTER, "pod.yaml": _POD}.items():
        (tmp_path / name).write_text(text)
    for module in modules:
        result = subprocess.run(
            [sys.executable, INTERRUPTED, module, *question],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (result.returncode, result.stdout) == (130, b""), module
        assert all(line.startswith(b"warning: ") for line in result.stderr.splitlines()), module


def test_an_answer_that_is_being_printed_is_printed_whole(environment: dict[str, str], tmp_path: Path) -> None:
    nodes = [node(f"node-{number}", taints=[{"key": "a", "effect": "NoSchedule"}]) for number in range(2000)]
    cluster = {"apiVersion": "v1", "kind": "List", "items": [*nodes, pod("web")]}
    (tmp_path / "c.json").write_text(json.dumps(cluster))
    command = [*PODIUM, "why", "web", "-f", "c.json", "-o", "json"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        # More than a pipe holds: podium waits in the middle of its answer until somebody reads on.
        begin = process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        answer = json.loads(begin + process.stdout.read())
        assert (len(answer["blockers"]), process.wait(PATIENCE_S)) == (2000, 130)


def test_control_c_ends_plan_after_whole_answers(start: Start, tmp_path: Path) -> None:
    case = {"id": "a", "kind": "solve", "now": "2026-06-01T12:00:00Z", "objects": [], "instanceTypes": []}
    (tmp_path / "cases.jsonl").write_text(f"{json.dumps(case)}\n" * 1_000_000)
    process = start("plan", "--cases", tmp_path / "cases.jsonl")
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline()) == {"id": "a", "ignored": {}}
    process.send_signal(signal.SIGINT)
    answers, complaints = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, complaints) == (130, "")
    assert all(json.loads(line)["id"] == "a" for line in answers.splitlines())
