import json
from functools import partial

import pytest

from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

_run = partial(run, "divide")

APIS = [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]
DYNAMIC = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
    "weightPreference": {"dynamicWeight": "AvailableReplicas"},
}


def cluster_object(name, cpu=None, **spec):
    summary = {} if cpu is None else {"resourceSummary": {"allocatable": {"cpu": cpu, "pods": "99"}}}
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"apiEnablements": APIS, **summary},
    }


def _binding(replicas=9, **placement):
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {"namespace": "shop", "name": "web-deployment"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
            "placement": {"replicaScheduling": DYNAMIC, **placement},
        },
    }


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 6,
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
    },
}
POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"placement": {"replicaScheduling": DYNAMIC}},
}


@pytest.fixture
def clusters(tmp_path):
    return write_objects(tmp_path / "clusters.yaml", cluster_object("a", "8"), cluster_object("b", "4"))


@pytest.fixture
def binding(tmp_path):
    return write_objects(tmp_path / "binding.yaml", _binding())


def test_table_has_a_line_for_each_cluster(clusters, binding):
    result = _run("-f", binding, "--clusters", clusters, "--explain")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.output.splitlines() if line.strip()]
    assert lines[0] == "CLUSTER REPLICAS AVAILABLE WHY MORE WITH"
    assert lines[2:] == [
        "a 6 8 takes 8 3 more available replicas",
        "b 3 4 takes 4 2 more available replicas",
        "Success: Binding has been scheduled successfully.",
    ]


def test_json_has_what_the_estimators_answered(clusters, binding):
    result = _run("-f", binding, "--clusters", clusters, "--available", "a=2,b=50", "-o", "json")
    answer = json.loads(result.output)
    assert (answer["clusters"], answer["reason"]) == ({}, "Unschedulable")
    assert answer["estimated"]["scheduler-estimator"] == {"a": 2, "b": 50}
    assert answer["available"] == {"a": 2, "b": 4}
    assert _run("-f", binding, "--clusters", clusters, "--available", "a=2,b=50", "--exit-code").exit_code == 3


def test_an_estimator_that_lacks_a_cluster_is_named(clusters, binding):
    output = _run("-f", binding, "--clusters", clusters, "--available", "a=2").output
    assert "scheduler-estimator does not count: cluster b does not exist in estimator cache" in output


def test_a_workload_is_divided_by_its_policy_over_members_nodes(tmp_path):
    west = [node("n1", "4", memory="8Gi"), pod("p", cpu="2", node="n1")]
    files = [
        write_objects(tmp_path / "web.yaml", DEPLOYMENT, POLICY),
        write_objects(tmp_path / "east.yaml", node("n1", "4", memory="8Gi")),
        write_objects(tmp_path / "west.yaml", *west),
    ]
    result = _run("-f", files[0], "--member", f"east={files[1]}", "--member", f"west={files[2]}", "-o", "json")
    assert json.loads(result.output)["clusters"] == {"east": 4, "west": 2}


@pytest.mark.parametrize(
    ("binding_object", "cluster_objects", "text"),
    [
        (_binding(-1), [cluster_object("a", "1")], "spec.replicas"),
        (
            _binding(spreadConstraints=[{"spreadByField": "region"}]),
            [cluster_object("a", "1")],
            "a constraint by cluster",
        ),
        (_binding(), [cluster_object("a")], "no cluster has a status.resourceSummary"),
        (_binding(), [cluster_object("a", "many")], "unknown suffix"),
        (DEPLOYMENT, [cluster_object("a", "1")], "expected a binding, or a workload with one PropagationPolicy"),
        (
            _binding(replicaSchedulng=DYNAMIC),
            [cluster_object("a", "1")],
            "spec.placement.replicaSchedulng: unknown field; did you mean replicaScheduling?",
        ),
        (
            _binding(),
            [cluster_object("a", "1") | {"spec": {"regoin": "eu"}}],
            "c.yaml: document 1: spec.regoin: unknown field; did you mean region?",
        ),
    ],
)
def test_what_cannot_be_divided_is_refused_with_its_field(tmp_path, binding_object, cluster_objects, text):
    files = [write_objects(tmp_path / "b.yaml", binding_object), write_objects(tmp_path / "c.yaml", *cluster_objects)]
    result = _run("-f", files[0], "--clusters", files[1])
    assert result.exit_code == 1
    assert text in result.output


def test_weights_beyond_int64_are_refused(tmp_path, clusters):
    rules = [{"targetCluster": {}, "weight": 2**63}]
    scheduling = {"replicaSchedulingType": "Divided", "weightPreference": {"staticWeightList": rules}}
    path = write_objects(tmp_path / "b.yaml", _binding(replicaScheduling=scheduling))
    assert "weight" in _run("-f", path, "--clusters", clusters).output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "give a binding with -f"),
        (("--available", "a"), "--available"),
        (("--member", "a"), "expected NAME=FILE"),
        (("--available", "a=-1"), "expected a number from 0"),
        (("--available", "a=1,a=2"), "a is given twice"),
        (("--available", "z=1"), "there is no such cluster"),
        (("--feature-gates", "Other=true"), "unknown gate"),
        (("--cases", "{clusters}"), "--cases brings its own"),
    ],
)
def test_options_that_contradict_each_other_are_refused(clusters, binding, arguments, text):
    options = [argument.format(clusters=clusters) for argument in arguments]
    common = ["-f", binding, "--clusters", clusters] if options else []
    result = _run(*common, *options)
    assert result.exit_code != 0
    assert text in result.output


def test_broken_case_is_an_answer_and_the_next_is_answered(tmp_path):
    path = tmp_path / "cases.jsonl"
    good = {"id": "x", "clusters": [cluster_object("a", "9")], "spec": _binding()["spec"]}
    twice = {**good, "id": "w", "clusters": [cluster_object("a", "9"), cluster_object("a", "9")]}
    lines = [good, {"id": "y", "spec": {"replicas": 1}}, {"id": "z"}, twice]
    path.write_text("\n".join(["{", *map(json.dumps, lines)]))
    answers = {answer.pop("id"): answer for answer in map(json.loads, _run("--cases", path).output.splitlines())}
    assert answers.pop("x")["clusters"] == {"a": 9}
    assert answers["y"] == {"error": "spec.placement: Required value"}
    assert answers["w"] == {"error": "cluster a is given twice"}
    assert all("not a case" in answers[name]["error"] for name in (f"{path}:1", "z"))


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 1.5, "many"])
def test_an_estimate_that_is_no_int32_is_refused(tmp_path, number):
    path = tmp_path / "cases.jsonl"
    case = {"id": "x", "clusters": [cluster_object("a", "9")], "spec": _binding()["spec"], "estimates": {"a": number}}
    path.write_text(json.dumps(case))
    assert "estimates" in _run("--cases", path).output
