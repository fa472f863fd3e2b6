"""`podium outlook`: pods of a dump, and pods from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podium.cli.exit_codes import EXIT_NO
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

EARLIER, LATEST = "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    neighbour = pod(
        "other", "3", node="n1", activeDeadlineSeconds=4000, status={"phase": "Running", "startTime": EARLIER}
    )
    web = pod("web", "3")
    web["metadata"]["creationTimestamp"] = LATEST
    return write_objects(tmp_path / "cluster.yaml", node("n1", "4"), neighbour, web, pod("huge", "9"))


def test_a_pod_of_a_dump_is_answered_as_of_the_latest_time_in_it(cluster: Path) -> None:
    result = run("outlook", "web", "-f", cluster)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == (
        "default/web: later, by 2026-03-01T12:07:10Z at the latest, on n1, when "
        "default/other ends (its activeDeadlineSeconds of 4000)"
    )
    answer = json.loads(run("outlook", "web", "-n", "default", "-f", cluster, "-o", "json").stdout)
    assert (answer["at"], answer["verdict"], answer["pods"][0]["by"]) == (LATEST, "later", "2026-03-01T12:07:10Z")


def test_another_time_may_be_given(cluster: Path) -> None:
    result = run("outlook", "web", "-f", cluster, "--at", "2026-03-01T13:00:00Z")
    assert "time unknown" in result.stdout
    assert "--at" in run("outlook", "web", "-f", cluster, "--at", "noon").stderr


def test_pods_of_a_file_come_after_those_that_wait(cluster: Path, tmp_path: Path) -> None:
    name = write_objects(tmp_path / "pod.yaml", pod("small", "500m"), pod("large", "8"))
    result = run("outlook", name, "-f", cluster)
    assert "default/small: now, on n1" in result.stdout
    assert "default/large: never, unless: " in result.stdout


def test_the_exit_code_tells_that_a_pod_never_runs(cluster: Path) -> None:
    assert run("outlook", "huge", "-f", cluster, "--exit-code").exit_code == EXIT_NO
    assert run("outlook", "web", "-f", cluster, "--exit-code").exit_code == 0
    assert "there is no pod default/hug" in run("outlook", "hug", "-f", cluster).stderr
    assert "there is no file hug.yaml" in run("outlook", "hug.yaml", "-f", cluster).stderr


def test_what_is_doubtful_about_the_question_is_a_warning(cluster: Path, tmp_path: Path) -> None:
    name = write_objects(tmp_path / "pod.yaml", pod("small", "500m", scheduler="podiun"))
    result = run("outlook", name, "-f", cluster)
    assert "did you mean podium?" in result.stderr
    assert "did you mean podium?" in json.loads(run("outlook", name, "-f", cluster, "-o", "json").stdout)["warnings"][0]


def test_only_pods_of_the_same_scheduler_are_ahead_in_its_queue(tmp_path: Path) -> None:
    pods = [pod("first", "100m", scheduler="batch"), pod("second", "100m"), pod("third", "100m", scheduler="batch")]
    for number, manifest in enumerate(pods):
        manifest["metadata"]["creationTimestamp"] = f"2026-03-01T11:00:0{number}Z"
    cluster = write_objects(tmp_path / "queues.yaml", node("n1", "4"), *pods)
    comer = write_objects(tmp_path / "comer.yaml", pod("comer", "100m", scheduler="batch"))
    assert "ahead" not in run("outlook", "second", "-f", cluster).stdout
    assert "1 pod ahead" in run("outlook", "third", "-f", cluster).stdout
    assert "2 pods ahead" in run("outlook", comer, "-f", cluster).stdout
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profiles = [{"schedulerName": name} for name in ("batch", pods[1]["spec"]["schedulerName"])]
    one_queue = write_objects(tmp_path / "config.yaml", head | {"profiles": profiles})
    assert "2 pods ahead" in run("outlook", "third", "-f", cluster, "--config", one_queue).stdout
