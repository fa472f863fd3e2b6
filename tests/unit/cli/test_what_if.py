import json
from functools import partial

import pytest

from tests.manifests import ZONE, node, pod
from tests.unit.cli.commands import run, write_objects
from tests.workload_manifests import workload

_run = partial(run, "what-if")


@pytest.fixture
def cluster(tmp_path):
    nodes = node("n1", "4", labels={ZONE: "a"}), node("n2", "2", labels={ZONE: "b"})
    pods = with_owner("web", pod("web-0", "1", node="n1")), with_owner("big", pod("big-0", "3", node="n1"))
    return write_objects(tmp_path / "cluster.yaml", *nodes, *pods)


def with_owner(name, manifest):
    """The pod as one of a StatefulSet, which keeps its name when it comes back."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name, "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    return manifest


def lines(result):
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_drain_is_described_in_words(cluster):
    output_lines = lines(_run("-f", cluster, "--drain", "n1"))
    assert output_lines[:4] == ["after: drain n1", "1 pod moved:", "default/web-0: n1 → n2", "1 pod left pending:"]
    assert output_lines[4].startswith("default/big-0 (was on n1): 0/2 nodes are available: ")
    assert "a cpu 100.0 0.0" in output_lines
    assert "b cpu 0.0 50.0" in output_lines


@pytest.mark.parametrize(
    ("step", "count"), [(("--scale", "default/StatefulSet/many=5"), 3), (("--drain", "n2"), 2)], ids=["scale", "drain"]
)
def test_pods_that_lack_the_same_share_a_line(tmp_path, step, count):
    nodes = node("n1", "1"), node("n2", "2")
    pods = [with_owner("many", pod(f"many-{number}", "1", node="n2")) for number in range(2)]
    large_set = {**workload("StatefulSet", "many", replicas=2, podManagementPolicy="Parallel"), "apiVersion": "apps/v1"}
    full = pod("full", "1", node="n1")
    cluster = write_objects(tmp_path / "c.yaml", *nodes, *pods, full, large_set)
    (heading, line, *_) = lines(_run("-f", cluster, *step))[1:]
    assert heading == f"{count} pods left pending:"
    names, _, reason = line.partition(": ")
    assert len(names.split(", ")) == count
    assert reason.startswith("0/2 nodes are available")


def test_steps_are_carried_out_in_the_order_given(cluster):
    drained_last = ("--add-nodes", "1", "--like", "n1", "--drain", "n1")
    first = json.loads(_run("-f", cluster, *drained_last, "-o", "json").stdout)
    assert first["steps"] == ["add 1 node like n1", "drain n1"]
    assert not first["pending"]
    second = json.loads(_run("-f", cluster, *drained_last[4:], *drained_last[:4], "-o", "json").stdout)
    assert second["steps"] == ["drain n1", "add 1 node like n1"]
    assert {move["pod"]: move["to"] for move in second["moved"]}["default/big-0"] == "n1-like-1"
    assert second["utilisation"]["after"]["a"]["cpu"]["allocatable"] == 8000


def test_steps_of_a_file_and_objects_of_another(cluster, tmp_path):
    more_objects = write_objects(tmp_path / "more.yaml", pod("new", "1"))
    steps = tmp_path / "steps.yaml"
    steps.write_text(f"steps:\n- apply: {more_objects}\n- remove: StatefulSet/default/big\n")
    answer = json.loads(_run("-f", cluster, "--steps", steps, "-o", "json").stdout)
    assert answer["steps"] == [f"apply {more_objects}", "remove StatefulSet/default/big"]
    assert ([placement["pod"] for placement in answer["placed"]], answer["gone"]) == (
        ["default/new"],
        ["default/big-0"],
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": 5}, "metadata.name: required"),
        ({"metadata": {"name": 5}}, "metadata.name: expected str, got int"),
        ({"spec": {"replicas": "3"}}, "spec.replicas: '3' is not a number of pods up to 100,000"),
        ({"spec": {"replicas": 2**31}}, "spec.replicas: 2147483648 is not a number of pods up to 100,000"),
        ({"spec": {"replicas": -1}}, "spec.replicas: -1 is not a number of pods up to 100,000"),
        ({"spec": {"template": 5}}, "Deployment default/web: spec.template: required"),
        ({"spec": {"template": {"spec": 5}}}, "spec: expected object, got int"),
        ({"kind": "Status"}, "the file holds nothing that a scheduler reads: it holds Status"),
    ],
)
def test_objects_that_cannot_be_applied_are_refused(cluster, tmp_path, change, message):
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    spec = {} if change.get("kind") == "Status" else {"template": {"spec": {"containers": []}}} | change.get("spec", {})
    changed_file = write_objects(tmp_path / "more.yaml", deployment | change | {"spec": spec})
    result = _run("-f", cluster, "--apply", changed_file)
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert str(changed_file) in result.stderr


def test_the_first_profile_decides_for_the_scheduler_of_an_applied_pod(cluster, tmp_path):
    new = pod("new", "1", schedulerName="other")
    answer = json.loads(_run("-f", cluster, "--apply", write_objects(tmp_path / "new.yaml", new), "-o", "json").stdout)
    assert [placement["pod"] for placement in answer["placed"]] == ["default/new"]


def test_a_workload_that_does_not_say_how_many_gets_as_many_pods_as_it_has(cluster, tmp_path):
    template = {"spec": {"containers": [{"name": "a"}]}}
    spec = {"replicas": None, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    answer = json.loads(
        _run("-f", cluster, "--apply", write_objects(tmp_path / "d.yaml", deployment), "-o", "json").stdout
    )
    assert [placement["pod"].startswith("default/d-") for placement in answer["placed"]] == [True]


def test_no_steps_are_no_question(cluster, tmp_path):
    steps = tmp_path / "steps.yaml"
    steps.write_text("steps: []\n")
    result = _run("-f", cluster, "--steps", steps)
    assert (result.exit_code, result.stderr) == (1, f"Error: {steps}: there are no steps\n")


@pytest.mark.parametrize("scheduler", ["podium", "other", None])
@pytest.mark.parametrize("profile", [False, True])
def test_one_profile_decides_for_the_schedulers_of_templates_without_pods(tmp_path, scheduler, profile):
    idle = workload("Deployment", "idle", replicas=0, pod_spec={"schedulerName": scheduler} if scheduler else None)
    if scheduler is None:
        del idle["spec"]["template"]["spec"]["schedulerName"]
    cluster = write_objects(tmp_path / "c.yaml", node("n1", "4"), pod("old", "1", node="n1", scheduler="theirs"), idle)
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    steps = ("--use-config", config) if profile else ()
    answer = json.loads(_run("-f", cluster, *steps, "--scale", "default/Deployment/idle=2", "-o", "json").stdout)
    assert len(answer["placed"]) == 2


@pytest.mark.parametrize("scheduler", ["podium", "other"])
def test_one_profile_decides_for_the_scheduler_of_an_applied_workload(cluster, tmp_path, scheduler):
    new = write_objects(tmp_path / "new.yaml", workload("Deployment", "new", pod_spec={"schedulerName": scheduler}))
    answer = json.loads(_run("-f", cluster, "--apply", new, "-o", "json").stdout)
    assert len(answer["placed"]) == 1


def test_another_profile_decides(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]\n"
    )
    answer = json.loads(_run("-f", cluster, "--use-config", config, "--drain", "n1", "-o", "json").stdout)
    assert {move["to"] for move in answer["moved"]} == {"n2"}
    assert not answer["pending"]


def test_cluster_is_not_written(cluster):
    content = cluster.read_bytes()
    assert _run("-f", cluster, "--remove", "Node/n1", "--scale", "a/b/c=1").exit_code == 1
    assert cluster.read_bytes() == content


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "give steps"),
        (["--add-nodes", "2"], 2, "give --add-nodes N and --like NODE"),
        (["--like", "n1"], 2, "give --add-nodes N and --like NODE"),
        (["--add-nodes", "x", "--like", "n1"], 2, "--add-nodes: expected a number from 1 to 10,000"),
        (["--add-nodes", "²", "--like", "n1"], 2, "--add-nodes: expected a number from 1 to 10,000"),
        (["--add-nodes", "9" * 5000, "--like", "n1"], 2, "--add-nodes: expected a number from 1 to 10,000"),
        (["--scale", "shop/Deployment/web=²"], 2, "with N up to 100,000, got 'shop/Deployment/web=²'"),
        (["--scale", "shop/Deployment/web=99999999"], 2, "with N up to 100,000, got 'shop/Deployment/web=99999999'"),
        (["--drain", "n22"], 1, "there is no node n22; did you mean n2?"),
        (["--scale", "web=3"], 2, "--scale: expected NAMESPACE/KIND/NAME=N"),
        (["--remove", "Pod"], 2, "--remove: expected KIND/NAME"),
        (["--steps", "absent.yaml"], 1, "absent.yaml: No such file"),
    ],
)
def test_steps_that_are_not_possible_are_refused(cluster, options, status, message):
    result = _run("-f", cluster, *options)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
    assert result.stdout == ""
