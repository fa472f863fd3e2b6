"""The option `--time-limit` of questions."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from podium.cli import asking
from podium.cli.options import time_limit
from podium.lib.system_clock import SystemClock
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

TAINTED = [node(f"n{number}", taints=[{"key": "a", "effect": "NoSchedule"}]) for number in range(5)]
SLEEPS = """
import time
from podium.framework import FilterPlugin

class Sleeps(FilterPlugin):
    def filter(self, state, pod, node):
        time.sleep(3600)
"""


def web(**fields: Any) -> Any:
    return pod("web", "1", scheduler="default-scheduler", **fields)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write_objects(tmp_path / "cluster.yaml", *TAINTED, web())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_GRACE_S", "_SAY_AFTER_S", "_AGAIN_S"):
        monkeypatch.setattr(time_limit, name, 0.1)
    monkeypatch.setattr(time_limit, "_ENDING_S_MAX", 600.0)


class HurryingClock(SystemClock):
    """A clock by which two milliseconds pass from one reading to the next, however fast the machine is."""

    now_s = 0.0

    def monotonic(self) -> float:
        HurryingClock.now_s += 0.002
        return HurryingClock.now_s


@pytest.fixture
def hurrying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "SystemClock", HurryingClock)
    monkeypatch.setattr(time_limit, "_GRACE_S", 600.0)


@pytest.mark.usefixtures("hurrying")
def test_what_was_found_in_time_is_shown_and_is_not_a_success(cluster: Path) -> None:
    arguments = ("why", "web", "-f", cluster, "--fix", "--time-limit", "1ms")
    result = run(*arguments, "-o", "json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["partial"], answer["fixes"]) == (1, True, [])
    assert answer["node"] is None
    assert "the time limit is over" in result.stderr
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout.startswith("partial answer, the time limit is over:")
    assert "the search has not ended" in result.stdout
    assert json.loads(run(*arguments[:-1], "0", "-o", "json").stdout)["fixes"]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (["why", "web", "--fix"], {"facts": ["the cluster has 1 nodes and 1 pods"]}),
        (["what-if", "--add-nodes", "1", "--like", "n1"], {"moved": []}),
    ],
)
def test_a_question_that_hangs_is_interrupted(tmp_path: Path, question: list[str], parts: Any) -> None:
    plugin = tmp_path / "sleeps.py"
    plugin.write_text(SLEEPS)
    free = write_objects(tmp_path / "free.yaml", node("n1"), web())
    config = tmp_path / "config.yaml"
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Sleeps"}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**head, "profiles": [profile]}))
    arguments = (*question, "-f", free, "--plugin", f"{plugin}:Sleeps", "--config", config, "--time-limit", "500ms")
    result = run(*arguments, "-o", "json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["partial"]) == (1, True)
    assert parts.items() <= answer.items()
    assert "still looking for the answer, for at most 0.5 s" in result.stderr
    assert "is over" in result.stderr
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.fixture
def sleeping(tmp_path: Path) -> tuple[str | Path, ...]:
    """The options of a plugin that never answers."""
    plugin, config = tmp_path / "sleeps.py", tmp_path / "config.yaml"
    plugin.write_text(SLEEPS)
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Sleeps"}]}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**head, "profiles": [profile]}))
    return "--plugin", f"{plugin}:Sleeps", "--config", config


@pytest.mark.parametrize(
    "question", [["why", "web"], ["evaluate", "--pod", "pod.yaml"], ["plan", "--rules", "podium", "--adopt-nodes"]]
)
def test_every_question_that_never_ends_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sleeping: tuple[str | Path, ...], question: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_objects(tmp_path / "pod.yaml", web())
    free = write_objects(tmp_path / "free.yaml", node("n1"), web())
    result = run(*question, "-f", free, *sleeping, "--time-limit", "500ms", "-o", "json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["partial"]) == (1, True)
    assert "facts" not in answer or "the cluster has 1 nodes and 1 pods" in answer["facts"]
    assert "is over" in result.stderr


@pytest.mark.usefixtures("hurrying")
def test_details_that_were_not_found_in_time_are_left_out(cluster: Path) -> None:
    pod_file = write_objects(cluster.parent / "pod.yaml", web())
    arguments = ("evaluate", "-f", cluster, "--pod", pod_file, "-o", "json", "--time-limit")
    result = run(*arguments, "1ms")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["partial"], "details" in answer) == (1, True, False)
    assert len(answer["filter"]) == 5
    assert run(*arguments[:-3], "--time-limit", "1ms").stdout.startswith("partial answer, the time limit is over:")
    complete_result = run(*arguments, "0")
    assert (complete_result.exit_code, len(json.loads(complete_result.stdout)["details"])) == (0, 5)


@pytest.mark.usefixtures("hurrying")
def test_replicas_placed_in_time_are_an_estimate(tmp_path: Path) -> None:
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "a"}}}
    replica = web(labels={"app": "a"}, topologySpreadConstraints=[spread | selector])
    node_file = write_objects(tmp_path / "c.yaml", node("n1"), node("n2"))
    arguments = (
        "estimate",
        "-f",
        node_file,
        "--workload",
        write_objects(tmp_path / "w.yaml", replica),
        "--mode",
        "accurate",
    )
    result = run(*arguments, "-o", "json", "--time-limit", "1ms")
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"replicas": 0, "decidesAs": "1.37", "partial": True})
    assert "at least 0 replicas fit" in run(*arguments, "--time-limit", "1ms").stdout
    assert json.loads(run(*arguments, "-o", "json").stdout) == {"replicas": 32, "decidesAs": "1.37"}


class Clock(SystemClock):
    """A clock that stands still until the test puts it forward."""

    now_s = 0.0

    def monotonic(self) -> float:
        return Clock.now_s


def test_the_time_counts_once_the_cluster_has_been_read(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_slowly(nodes: int, pods: int) -> None:
        assert (nodes, pods) == (5, 1)
        Clock.now_s += 50.0

    monkeypatch.setattr(time_limit, "SystemClock", Clock)
    monkeypatch.setattr(Clock, "now_s", 0.0)
    monkeypatch.setattr(asking, "note_size", read_slowly)
    arguments = ("why", "web", "-f", cluster, "--fix", "--time-limit", "10s", "-o", "json")
    result = run(*arguments)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["fixes"]


@pytest.mark.long
def test_reading_the_cluster_has_a_limit_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "_READING_S_MIN", 0.001)
    nodes = [node("n", labels={f"label-{number}": "x" for number in range(20_000)})]
    result = run(
        "why", "web", "-f", write_objects(tmp_path / "c.yaml", *nodes * 20), "--time-limit", "1ms", "-o", "json"
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["facts"] == []
    assert "the time limit of 0.001 s for reading the cluster is over" in result.stderr


def test_whoever_reads_the_answer_may_take_any_time(cluster: Path) -> None:
    assert run("evaluate", "-f", cluster, "--pod", cluster, "--time-limit", "-1s").exit_code == 2
    result = run("why", "web", "-f", cluster, "--time-limit", "1h")
    assert result.exit_code == 0
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
