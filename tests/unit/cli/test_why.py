import gzip
import json
from functools import partial

import pytest

from tests.device_manifests import (
    claiming,
    device_class,
    devices,
    exactly,
    held_claim,
    resource_claim,
    resource_slice,
)
from tests.gang_manifests import COSCHEDULING, group, members
from tests.manifests import node, pod
from tests.unit.cli.commands import run, written

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
NODES = node("n1", "4"), node("n2", "2", taints=[TAINT]), node("n3", "4", unschedulable=True, taints=[TAINT])

_run = partial(run, "why")


@pytest.fixture
def cluster(tmp_path):
    pods = pod("full", "4", node="n1"), pod("web", "1"), pod("big", "99")
    return written(tmp_path / "cluster.yaml", *NODES, *pods)


def lines(result):
    assert result.exit_code == 0
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_pending_pod_is_told_every_blocker_of_every_node(cluster):
    shown = lines(_run("web", "-f", cluster))
    assert shown[0].startswith("default/web fits on no node: 0/3 nodes are available: 1 Insufficient cpu, ")
    assert "2 TaintToleration node(s) had untolerated taint(s) (team=a:NoSchedule) n2, n3" in shown
    assert "1 NodeUnschedulable node(s) were unschedulable n3" in shown
    assert "2 nodes are one edit away: n1, n2" in shown
    assert shown[-1].startswith("Preemption does not help: ")


def test_fixes_are_shown_with_their_patches(cluster):
    shown = lines(_run("web", "-f", cluster, "--fix"))
    at = shown.index("default/web fits after one edit")
    assert shown[at + 1] == "tolerate the taint team=a:NoSchedule → n2"
    assert shown[at + 2].startswith('Pod web: [{"op":"add","path":"/spec/tolerations","value":[{"key":"team"')
    assert "evict default/full from n1 → n1" in shown
    assert "add a node like n1 → n1-like-1" in shown


def test_pod_that_fits_needs_no_edit(cluster):
    assert lines(_run("full", "-f", cluster, "--fix"))[-1] == "default/full fits as it is"
    answer = json.loads(_run("full", "-f", cluster, "--fix", "-o", "json").stdout)
    assert (answer["fits"], answer["fixes"]) == (True, [])


def test_pod_that_nothing_helps_is_told_so(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: podium, pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: "
        "[{key: metadata.name, operator: In, values: [other]}]}]}}}}]}]\n"
    )
    result = _run("web", "-f", cluster, "--fix", "--config", config)
    assert "No set of up to 3 edits lets default/web fit" in lines(result)


def test_json_has_everything(cluster):
    answer = json.loads(_run("web", "-f", cluster, "--fix", "-o", "json").stdout)
    assert (answer["node"], answer["nodes"], answer["one_edit_away"]) == (None, 3, ["n1", "n2"])
    assert [each["plugin"] for each in answer["blockers"]["n3"]] == ["NodeUnschedulable", "TaintToleration"]
    assert answer["blockers"]["n1"][0]["detail"] == "asks for 1 cpu, 0 left"
    assert answer["groups"][0]["count"] == 2
    assert answer["fixes"][0]["edits"][0]["kind"] == "tolerate-taint"
    assert all(each["minimum"] for each in answer["fixes"])
    assert not answer["fits"]


def test_bound_pod_is_told_why_it_is_there_and_not_elsewhere(tmp_path):
    nodes = node("n1", "4"), node("n2", "8"), node("n3", unschedulable=True)
    cluster = written(tmp_path / "cluster.yaml", *nodes, pod("web", "1", node="n2"))
    shown = lines(_run("web", "-f", cluster, "--node", "n3"))
    assert shown[0] == "default/web is on n2. If it were pending now, it would go to n2"
    assert any(line.startswith("NODE TOTAL ") for line in shown)
    assert any(line.startswith("n2 beats n1 by ") for line in shown)
    assert "It does not fit on n3:" in shown
    assert "NodeUnschedulable: node(s) were unschedulable" in shown
    assert "It fits on n1, which is number 2 of 2" in lines(_run("web", "-f", cluster, "--node", "n1"))
    answer = json.loads(_run("web", "-f", cluster, "-o", "json").stdout)
    assert (answer["bound_to"], [each["node"] for each in answer["scores"]]) == ("n2", ["n2", "n1"])


def test_unknown_pods_and_nodes_are_told_with_the_nearest_names(cluster):
    result = _run("wed", "-f", cluster)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no pod default/wed; did you mean default/web?" in result.stderr
    result = _run("web", "-f", cluster, "--node", "n22")
    assert (result.exit_code, "there is no node n22; did you mean n2?" in result.stderr) == (1, True)


def test_exit_status_tells_that_the_pod_fits_nowhere(cluster):
    assert _run("web", "-f", cluster, "--exit-code").exit_code == 3
    assert _run("full", "-f", cluster, "--exit-code").exit_code == 0


def test_gated_pod_is_told_so(tmp_path):
    gated = pod("web", schedulingGates=[{"name": "hold"}])
    shown = lines(_run("web", "-f", written(tmp_path / "c.yaml", NODES[0], gated)))
    assert "It would not be tried yet: waiting for scheduling gates: [hold] (SchedulingGates)" in shown


def test_recorded_scenarios_are_answered_a_line_each(tmp_path):
    packed = tmp_path / "cases.jsonl.gz"
    cases = [
        {"id": "a", "objects": [NODES[1]], "pod": pod("web", "1", scheduler=None)},
        {"id": "b", "objects": [NODES[0]], "pod": pod("web", "1", scheduler=None)},
        {"id": "c", "objects": [NODES[0]], "pod": pod("web", "1", scheduler="x")},
    ]
    packed.write_bytes(gzip.compress("\n".join(json.dumps(each) for each in cases).encode() + b"\nnonsense"))
    first, second, third, last = (
        json.loads(line) for line in _run("--cases", packed, "--fix", "--output", "jsonl").stdout.splitlines()
    )
    assert (first["id"], first["fits"], first["fixes"][0]["node"]) == ("a", False, "n2")
    edit = first["fixes"][0]["edits"][0]
    assert edit["object"] == {"kind": "Pod", "namespace": "default", "name": "web"}
    assert edit.keys() == {"kind", "object", "patch"}
    assert (second["fits"], second["fixes"]) == (True, [])
    assert "no profile is named 'x'" in third["error"]
    assert last["error"].startswith("not a scenario: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give the name of a pod, or recorded scenarios"),
        (["web", "--cases", "x"], "give the name of a pod, or recorded scenarios"),
        (["--cases", "x"], "--cases goes with --fix"),
        (["web", "-f", "x", "--kubeconfig", "y"], "give either files with -f"),
    ],
)
def test_bad_command_lines_are_refused(arguments, said):
    result = _run(*arguments)
    assert (result.exit_code, said in result.stderr) == (2, True)


@pytest.fixture
def gpus(tmp_path):
    listed = devices(2, attributes={"model": "a100"})
    claims = held_claim("train", {"n1": ["gpu-1"]}, ["trainer-0"]), resource_claim("c", exactly(count=2))
    slices = [resource_slice(name, listed, node=name) for name in ("n1", "n4")]
    asking = pod("web", resourceClaims=claiming("c"))
    more = node("n4", "4", unschedulable=True), device_class("gpu"), asking
    return written(tmp_path / "gpus.yaml", NODES[0], *more, *claims, *slices)


def test_devices_that_are_missing_are_shown_by_request_with_those_who_have_them(gpus):
    shown = lines(_run("web", "-f", gpus))
    at = shown.index("devices:")
    assert shown[at + 1 : at + 4] == [
        "n1:",
        "request gpu of claim default/c asks for 2 devices of class gpu: 2 of 2 match, 1 taken, 1 free",
        "n1: gpu-1 of gpu.example.com/n1: taken by claim default/train (pod trainer-0)",
    ]
    answer = json.loads(_run("web", "-f", gpus, "-o", "json").stdout)
    assert answer["devices"][0]["nodes"]["n1"]["requests"][0]["taken_by"][0]["pods"] == ["trainer-0"]


@pytest.mark.parametrize("command", ["evaluate", "capacity"])
def test_other_questions_say_what_devices_are_missing_as_well(command, gpus, tmp_path):
    asking = written(tmp_path / "pod.yaml", pod("api", resourceClaims=claiming("c")))
    shown = " ".join(run(command, "-f", gpus, "--pod", asking).stdout.split())
    assert "cannot allocate all claims (request gpu of claim default/c asks for 2 devices of class gpu: " in shown


@pytest.fixture
def gang(tmp_path):
    objects = group(COSCHEDULING, 3), *members(COSCHEDULING, 3), NODES[0], node("n4", "4")
    return written(tmp_path / "gang.yaml", *objects)


def test_a_member_of_a_gang_is_told_the_gangs_story(gang):
    shown = lines(_run("train-0", "-f", gang))
    assert shown[0].endswith("and would go to n1, but its gang does not fit")
    assert shown[1].startswith("It is a member of the gang default/train (scheduling.x-k8s.io): 3 of its 3 pods")
    assert "default/train-2 gets none: 0/2 nodes are available: 2 Insufficient cpu." in shown
    assert "1 more must get a node, so none of those that wait starts" in shown
    assert _run("train-0", "-f", gang, "--exit-code").exit_code == 3


def test_the_fixes_of_a_member_are_those_of_the_gang(gang):
    shown = lines(_run("train-0", "-f", gang, "--fix"))
    at = shown.index("The whole gang default/train fits after one edit")
    assert shown[at + 1 : at + 4] == [
        "lower the request for cpu from 3 to 2, on each of 3 pods → n1, n4",
        'Pod train-2 and 2 more: [{"op":"add","path":"/spec/containers/0/resources/requests/cpu","value":"2"}]',
        "add a node like n1 → n1, n4, n1-like-1",
    ]
    answer = json.loads(_run("train-0", "-f", gang, "--fix", "-o", "json").stdout)
    assert (answer["gang"]["fits"], answer["gang_of_fixes"]) == (False, "default/train")
    assert len(answer["fixes"][0]["edits"][0]["members"]) == 3


def test_attempts_that_fail_because_of_a_pool_are_explained(tmp_path):
    twice = [resource_slice(name, devices(1), node="n1", slices=2) for name in ("s1", "s2")]
    claim, asking = resource_claim("c", exactly(allocationMode="All")), pod("web", resourceClaims=claiming("c"))
    cluster = written(tmp_path / "c.yaml", NODES[0], device_class("gpu"), claim, *twice, asking)
    shown = lines(_run("web", "-f", cluster, "--fix"))
    problem = "request gpu: asks for all devices, but resource pool gpu.example.com/n1 is currently invalid"
    assert shown[0].startswith("default/web cannot be placed, its attempts fail: ")
    assert f"claim default/c, {problem}" in shown
    assert "n1: pool gpu.example.com/n1: device gpu-0 is in slice s1 and in s2" in shown
    answer = json.loads(_run("web", "-f", cluster, "-o", "json").stdout)
    assert answer["error"].endswith(problem)
    assert answer["devices"][0]["nodes"]["n1"]["broken_pools"]
