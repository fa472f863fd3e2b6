"""`podium demo` from the outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from tests.integration.cli.conftest import PODIUM, ROOT, Podium, Start, complaints, read_until
from tests.patience import PATIENCE_S
from tests.process_tree import children_of, wait_gone

SMALL = ("demo", "--nodes", "10", "--pods", "60")


def test_the_last_line_is_json_and_the_only_one_on_standard_output(podium: Podium) -> None:
    result = podium(*SMALL, "--output", "json")
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    answer = json.loads(line)
    assert list(answer) == ["nodes", "pods", "bound", "unschedulable", "duration_s", "pods_per_s"]
    assert {key: answer[key] for key in list(answer)[:4]} == {"nodes": 10, "pods": 60, "bound": 60, "unschedulable": 3}
    assert answer["pods_per_s"] == pytest.approx(60 / answer["duration_s"], rel=0.1)
    progress_lines = [line for line in complaints(result.stderr) if not re.search(r": (?!(\d+)/\1$)\d+/", line)]
    assert progress_lines == ["starting an API server", "creating pods: 63/63", "binding pods: 60/60"]


def test_nodes_come_and_go_with_the_load_and_each_event_is_a_line(podium: Podium) -> None:
    result = podium("demo", "--autoscale", "--timeout", "85", "--output", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["pods"], answer["pods_after"], answer["bound"]) == (86, 10, 10)
    assert answer["nodes"] >= 4
    assert answer["nodes_after"] < answer["nodes"]
    assert answer["cores_after"] < answer["cores"] / 3
    # Without a catalogue nobody knows what a node costs.
    assert not re.search(r"cost|price|per hour|per month", result.stdout + result.stderr)
    lines = complaints(result.stderr)
    assert all(len(line) <= 80 for line in lines)
    events = [line.partition(" s  ")[2] for line in lines]
    assert events[0] == "Starting an API server without nodes"
    assert [event.split()[0] for event in events].index("Bought") < [event.split()[0] for event in events].index(
        "Removed"
    )
    assert events[-1].startswith("Nothing more can go: ")


def test_the_sizes_of_the_other_demo_do_not_go_with_autoscale(podium: Podium) -> None:
    result = podium("demo", "--autoscale", "--pods", "5")
    assert result.returncode == 2
    assert "--pods: --autoscale brings its own nodes and pods" in result.stderr


def test_pods_with_claims_get_devices_and_a_table_shows_them(podium: Podium) -> None:
    result = podium("demo", "--nodes", "5", "--pods", "10", "--devices", "gpu=4")
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "9 of 20 devices are in use (gpu.example.com)" in result.stdout
    assert re.search(r"^  pair-gpu-\d+ +node-\d+  gpu-\d gpu-\d  2 gpu, same pcieRoot$", result.stdout, re.M)
    assert "no-such-device 0/5 nodes are available: " in " ".join(result.stdout.split())


def test_the_text_form_is_plain_and_narrow_where_there_is_no_terminal(podium: Podium) -> None:
    result = podium(*SMALL)
    assert result.returncode == 0, result.stderr
    assert complaints(result.stderr) == []
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "All 60 pods that fit are bound" in result.stdout
    assert sum(int(count) for count in re.findall(r"^  zone-. .*?(\d+) pods", result.stdout, re.M)) == 60
    words = " ".join(result.stdout.split())
    assert re.search(r"3 pods fit on no node no-such-node 0/10 nodes are available: .* too-big 0/10 nodes", words)


def test_the_text_form_is_narrow_where_only_the_input_is_a_wide_terminal(environment: dict[str, str]) -> None:
    terminal, inside = os.openpty()
    termios.tcsetwinsize(inside, (40, 132))
    try:
        result = subprocess.run(
            [*PODIUM, *SMALL],
            stdin=inside,
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE_S,
            check=True,
        )
    finally:
        os.close(terminal)
        os.close(inside)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_output_that_takes_only_ascii_gets_only_ascii(podium: Podium) -> None:
    result = podium(*SMALL, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii()
    assert "###" in result.stdout


def test_pods_ask_for_the_first_profile_of_a_configuration(podium: Podium) -> None:
    file = ROOT / "examples/config/several-profiles.yaml"
    result = podium(*SMALL, "--config", file, "--output", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["bound"] == 60


def test_a_policy_that_binds_what_cannot_fit_is_a_failure_that_names_the_pod(podium: Podium, tmp_path: Path) -> None:
    file = tmp_path / "no-fit.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles:\n"
        "- schedulerName: careless\n"
        "  plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}\n"
    )
    result = podium(*SMALL, "--config", file, "--output", "json")
    assert result.returncode == 1
    assert json.loads(result.stdout)["unschedulable"] == 2
    assert complaints(result.stderr)[-1].endswith("not reported unschedulable: too-big")


def test_too_little_time_is_a_failure_that_names_pods(podium: Podium) -> None:
    result = podium("demo", "--nodes", "20", "--pods", "200", "--timeout", "0.01", "--output", "json")
    assert result.returncode == 1
    answer = json.loads(result.stdout.splitlines()[-1])
    assert answer["bound"] < 200
    assert re.search(r"Error: \d+ of 200 pods that can fit were not bound within 0.01 s: \w+-\d{5}, ", result.stderr)


@pytest.mark.parametrize("stage", ["starting", "creating", "binding"])
def test_an_interrupted_demo_leaves_nothing_behind(start: Start, environment: dict[str, str], stage: str) -> None:
    demo = start("demo", "--nodes", "200", "--pods", "2000")
    read_until(demo, [stage])
    children = children_of(demo.pid)
    demo.send_signal(signal.SIGINT)
    _, log_text = demo.communicate(timeout=PATIENCE_S)
    assert demo.returncode == 130
    assert complaints(log_text) == ["Interrupted."]
    assert wait_gone(children)
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def test_a_killed_demo_leaves_nothing_behind(start: Start, environment: dict[str, str]) -> None:
    demo = start("demo", "--nodes", "200", "--pods", "2000")
    read_until(demo, ["creating"])
    children = children_of(demo.pid)
    assert children, "the API server is a process of its own"
    demo.kill()
    assert wait_gone(children)
    assert list(Path(environment["TMPDIR"]).iterdir()) == []


def test_a_demo_whose_server_dies_says_so(start: Start) -> None:
    demo = start("demo", "--nodes", "200", "--pods", "2000")
    read_until(demo, ["creating pods: 2003"])
    (server,) = children_of(demo.pid)
    os.kill(server, signal.SIGKILL)
    _, log_text = demo.communicate(timeout=PATIENCE_S)
    assert demo.returncode == 1
    assert "the demo's API server ended with exit code -9" in log_text


def test_gangs_start_as_a_whole_and_one_that_fits_in_part_does_not(podium: Podium) -> None:
    result = podium(*SMALL[:-1], "30", "--gangs", "5", "--output", "json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["pods"], answer["bound"], answer["unschedulable"]) == (45, 45, 6)
