import json
from functools import partial

import pytest

from tests.manifests import ZONE, node, pod
from tests.unit.cli.commands import run, written

_run = partial(run, "what-if")


@pytest.fixture
def cluster(tmp_path):
    nodes = node("n1", "4", labels={ZONE: "a"}), node("n2", "2", labels={ZONE: "b"})
    return written(tmp_path / "cluster.yaml", *nodes, pod("web", "1", node="n1"), pod("big", "3", node="n1"))


def lines(result):
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_drain_is_told_in_words(cluster):
    shown = lines(_run("-f", cluster, "--drain", "n1"))
    assert shown[:4] == ["after: drain n1", "1 pod(s) move:", "default/web: n1 → n2", "1 pod(s) are pending:"]
    assert shown[4].startswith("default/big (was on n1): 0/2 nodes are available: ")
    assert "a cpu 100.0 0.0" in shown
    assert "b cpu 0.0 50.0" in shown


def test_steps_are_carried_out_in_the_order_given(cluster):
    drained_last = ("--add-nodes", "1", "--like", "n1", "--drain", "n1")
    first = json.loads(_run("-f", cluster, *drained_last, "-o", "json").stdout)
    assert first["steps"] == ["add 1 node(s) like n1", "drain n1"]
    assert not first["pending"]
    second = json.loads(_run("-f", cluster, *drained_last[4:], *drained_last[:4], "-o", "json").stdout)
    assert second["steps"] == ["drain n1", "add 1 node(s) like n1"]
    assert {each["pod"]: each["to"] for each in second["moved"]}["default/big"] == "n1-like-1"
    assert second["utilisation"]["after"]["a"]["cpu"]["allocatable"] == 8000


def test_steps_of_a_file_and_objects_of_another(cluster, tmp_path):
    more = written(tmp_path / "more.yaml", pod("new", "1"))
    steps = tmp_path / "steps.yaml"
    steps.write_text(f"steps:\n- apply: {more}\n- remove: Pod/default/big\n")
    answer = json.loads(_run("-f", cluster, "--steps", steps, "-o", "json").stdout)
    assert answer["steps"] == [f"apply {more}", "remove Pod/default/big"]
    assert ([each["pod"] for each in answer["placed"]], answer["gone"]) == (["default/new"], ["default/big"])


def test_another_profile_decides(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]\n"
    )
    answer = json.loads(_run("-f", cluster, "--profile", config, "--drain", "n1", "-o", "json").stdout)
    assert {each["to"] for each in answer["moved"]} == {"n2"}
    assert not answer["pending"]


def test_cluster_is_not_written(cluster):
    before = cluster.read_bytes()
    assert _run("-f", cluster, "--remove", "Node/n1", "--scale", "a/b/c=1").exit_code == 1
    assert cluster.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ([], 2, "give steps"),
        (["--add-nodes", "2"], 2, "give --add-nodes N and --like NODE"),
        (["--like", "n1"], 2, "give --add-nodes N and --like NODE"),
        (["--add-nodes", "x", "--like", "n1"], 2, "--add-nodes: expected a positive number"),
        (["--drain", "n22"], 1, "there is no node n22; did you mean n2?"),
        (["--scale", "web=3"], 1, "scale: expected NAMESPACE/KIND/NAME=N"),
        (["--steps", "absent.yaml"], 1, "absent.yaml: No such file"),
    ],
)
def test_steps_that_are_not_possible_are_refused(cluster, options, status, said):
    result = _run("-f", cluster, *options)
    assert (result.exit_code, said in result.stderr) == (status, True), result.stderr
    assert result.stdout == ""
