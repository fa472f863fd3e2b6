"""Where an answer cannot be written: a full disk is told in one line, a reader that has gone away needs no words."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests import warm_podium
from tests.integration.cli.conftest import PODIUM, ROOT, complaints
from tests.patience import PATIENCE_S

_CONFIG = str(ROOT / "examples" / "config" / "secondary-scheduler.yaml")
_CLUSTER = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "110"}}}
- {apiVersion: v1, kind: Service, metadata: {name: s}}
- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: x}]}}
"""
_SCENARIO = (
    '{"objects":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}],'
    '"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}}'
)
_COMMANDS = {
    "evaluate": "evaluate -f cluster.yaml --pod pod.yaml",
    "evaluate-json": "evaluate -f cluster.yaml --pod pod.yaml --output json",
    "evaluate-scenarios": "evaluate scenarios.jsonl",
    "config-defaults": "config defaults",
    "config-check": f"config check {_CONFIG}",
    "config-effective": f"config effective {_CONFIG}",
    "capacity": "capacity -f cluster.yaml --pod pod.yaml",
    "estimate": "estimate -f cluster.yaml --requests cpu=1",
    "estimate-json": "estimate -f cluster.yaml --requests cpu=1 --output json",
    "why": "why web -f cluster.yaml",
    "what-if": "what-if -f cluster.yaml --drain n1",
    "make-room": "make-room -f cluster.yaml --for default/web",
    "doctor": "doctor --kubeconfig absent",
    "help": "--help",
    "version": "--version",
}


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(_CLUSTER)
    Path("pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a}]}}")
    Path("scenarios.jsonl").write_text(f"{_SCENARIO}\n" * 300)


def _run(command: str, environment: dict[str, str], **streams: int) -> subprocess.CompletedProcess[str]:
    return warm_podium.run(command.split(), env=environment, **streams)


@pytest.mark.parametrize("command", _COMMANDS)
def test_a_full_disk_is_reported_in_one_line(command: str, environment: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        result = _run(_COMMANDS[command], environment, stdout=full.fileno())
    assert result.returncode == 1
    # Warnings about the question may come first.
    assert result.stderr.splitlines()[-1] == "Error: cannot write the output: No space left on device"


def test_a_full_disk_under_both_streams_ends_a_command_with_1(environment: dict[str, str]) -> None:
    with open("/dev/full", "w") as full:
        assert _run("config defaults", environment, stdout=full.fileno(), stderr=full.fileno()).returncode == 1


@pytest.mark.parametrize("command", ["evaluate", "evaluate-scenarios", "config-defaults", "estimate", "help"])
def test_a_reader_that_has_gone_away_ends_a_command_quietly(command: str, environment: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = _run(_COMMANDS[command], environment, stdout=writer)
    finally:
        os.close(writer)
    assert (result.returncode, complaints(result.stderr)) == (1, [])


def test_half_a_character_of_a_hostile_file_is_written_escaped(environment: dict[str, str]) -> None:
    config = '{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",'
    Path("config.json").write_text(config + '"profiles":[{"schedulerName":"\\ud800"}]}')
    for command in (
        "config effective config.json -o json",
        "config check config.json",
        "config check config.json -o json",
    ):
        result = _run(command, environment)
        assert "Traceback" not in result.stderr
        assert "ud800" in result.stdout + result.stderr


def test_an_input_beyond_the_memory_is_reported_in_one_line(environment: dict[str, str]) -> None:
    items = ",".join(['{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"a":[[],[],[],[]]}}'] * 400_000)
    Path("cluster.yaml").write_text(f'{{"apiVersion":"v1","kind":"List","items":[{items}]}}')

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))

    # What a forked process has inherited counts as well.
    result = subprocess.run(
        [*PODIUM, *_COMMANDS["evaluate"].split()],
        env={**environment, "OPENBLAS_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_S,
        preexec_fn=little_memory,
        check=False,
    )
    assert (result.returncode, complaints(result.stderr)) == (1, ["Error: not enough memory for this input"])
