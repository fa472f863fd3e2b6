import json
from functools import partial
from pathlib import Path

import pytest

from tests.manifests import node
from tests.unit.cli.commands import run, write_objects

NODE = node("n1", "4", memory="8Gi")
CORDONED = node("n2", "4", memory="8Gi", unschedulable=True)
CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "2Gi"}}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"template": {"spec": {"containers": [CONTAINER]}}},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "shop"},
    "status": {"hard": {"cpu": "1"}, "used": {"cpu": "0"}},
}
CLUSTER = {
    "apiVersion": "cluster.karmada.io/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "m"},
    "status": {"resourceSummary": {"allocatable": {"cpu": "3", "memory": "9Gi", "pods": "9"}}},
}


_run = partial(run, "estimate")


@pytest.fixture
def cluster(tmp_path):
    return write_objects(tmp_path / "cluster.yaml", NODE, CORDONED, QUOTA)


def test_table_says_for_each_node_how_many_fit_and_what_limits_them(cluster, tmp_path):
    result = _run("-f", cluster, "--workload", write_objects(tmp_path / "web.yaml", DEPLOYMENT), "--explain")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.output.splitlines() if line.strip()]
    assert lines[0] == "NODE REPLICAS LIMITED BY"
    assert lines[2:] == ["n1 4 memory", "n2 0 cordoned", "4 replicas fit"]


def test_json_has_the_same(cluster):
    result = _run("-f", "-", "--requests", "cpu=1500m", "--explain", "--output", "json", stdin=cluster.read_text())
    assert json.loads(result.output) == {
        "replicas": 2,
        "nodes": [{"node": "n1", "replicas": 2, "limit": "cpu"}, {"node": "n2", "replicas": 0, "limit": "cordoned"}],
    }


def test_without_a_request_a_replica_takes_a_pods_place(cluster):
    assert _run("-f", cluster).output == "110 replicas fit\n"


def test_quota_bounds_a_workload_of_its_namespace_with_the_gate(cluster, tmp_path):
    workload = write_objects(tmp_path / "web.yaml", DEPLOYMENT)
    result = _run("-f", cluster, "--workload", workload, "--feature-gates", "ResourceQuotaEstimate=true")
    assert result.output == "2 replicas fit\n"


def test_accurate_mode_knows_of_ports_and_of_pods_that_wait(tmp_path):
    port = {**CONTAINER, "ports": [{"containerPort": 80, "hostPort": 80}]}
    web = {**DEPLOYMENT, "spec": {"template": {"spec": {"containers": [port]}}}}
    waiting = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w"}, "spec": {"containers": [port]}}
    nodes = [{**NODE, "metadata": {"name": f"n{index}"}} for index in range(3)]
    files = ("-f", write_objects(tmp_path / "cluster.yaml", *nodes, waiting))
    arguments = (*files, "--workload", write_objects(tmp_path / "web.yaml", web))
    assert _run(*arguments).output == "12 replicas fit\n"
    assert _run(*arguments, "--mode", "accurate").stdout == "2 replicas fit\n"
    result = _run(*files, "--mode", "accurate", "--requests", "memory=4Gi")
    assert result.stdout == "5 replicas fit\n"
    assert "warning: the answer depends on services" in result.stderr


def test_karmadas_cluster_object_gives_the_general_estimate_too(cluster, tmp_path):
    result = _run("-f", cluster, "--requests", "cpu=1", "--cluster-object", write_objects(tmp_path / "m.yaml", CLUSTER))
    assert result.output.splitlines() == [
        "4 replicas fit",
        "3 fit by the Cluster's summary and models",
        "3 is the number that Karmada uses",
        "Nodes by what they have left: 2 of grade 1",
    ]


def _member_with_models(*bounds):
    ranges = [[{"name": "cpu", "min": low, "max": high}] for low, high in bounds]
    models = [{"grade": grade, "ranges": model_ranges} for grade, model_ranges in enumerate(ranges)]
    return {**CLUSTER, "spec": {"resourceModels": models}}


def test_nodes_are_graded_by_the_clusters_models(cluster, tmp_path):
    modelled = _member_with_models(("0", "2"), ("2", "9223372036854775807"))
    arguments = ("-f", cluster, "--requests", "cpu=1", "--cluster-object", write_objects(tmp_path / "m.yaml", modelled))
    assert "Nodes by what they have left: 2 of grade 1\n" in _run(*arguments).output
    answer = json.loads(_run(*arguments, "--output", "json").output)
    assert answer["allocatable_modelings"] == [{"grade": 0, "count": 0}, {"grade": 1, "count": 2}]


def test_models_are_put_in_order_as_by_karmadas_webhook(cluster, tmp_path):
    modelled = _member_with_models(("1", "2"), ("2", "4"))
    modelled["spec"]["resourceModels"].reverse()
    arguments = ("-f", cluster, "--cluster-object", write_objects(tmp_path / "m.yaml", modelled), "--output", "json")
    assert json.loads(_run(*arguments).output)["allocatable_modelings"] == [
        {"grade": 0, "count": 0},
        {"grade": 1, "count": 2},
    ]


def test_nodes_are_graded_by_karmadas_own_models_where_the_cluster_has_none(cluster, tmp_path):
    arguments = ("-f", cluster, "--cluster-object", write_objects(tmp_path / "m.yaml", CLUSTER), "--output", "json")
    graded = json.loads(_run(*arguments).output)["allocatable_modelings"]
    # 8Gi put them there, though 4 cores alone would be of grade 3.
    assert [grade["count"] for grade in graded] == [0, 2, 0, 0, 0, 0, 0, 0, 0]


def test_fault_of_models_is_reported_in_upstreams_words(cluster, tmp_path):
    path = write_objects(tmp_path / "m.yaml", _member_with_models(("0", "2"), ("3", "9223372036854775807")))
    result = _run("-f", cluster, "--cluster-object", path)
    assert result.exit_code == 1
    assert "Model intervals for resources must be contiguous and non-overlapping" in " ".join(result.output.split())


def test_models_without_ranges_are_named(cluster, tmp_path):
    path = write_objects(tmp_path / "m.yaml", {**CLUSTER, "spec": {"resourceModels": [{"grade": 0}]}})
    result = _run("-f", cluster, "--cluster-object", path)
    assert result.exit_code == 1
    assert "cluster m: spec.resourceModels[0].ranges: Required value" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--requests", "cpu"], "--requests: cpu: expected NAME=AMOUNT"),
        (["--requests", "cpu=lots"], '--requests: cpu: "lots" has the unknown suffix'),
        (["--feature-gates", "Quota=true"], "unknown gate 'Quota'"),
        (["--feature-gates", "ResourceQuotaEstimate=1"], "expected true or false, got '1'"),
        (["--kubeconfig", "x"], "give either files with -f, or a running cluster"),
        (["--cases", "x"], "--cases brings its own clusters"),
        (["--requests", "cpu=1", "--workload", "x"], "give either --workload or --requests"),
        (["--mode", "accurate", "--explain"], "go with --mode parity"),
        (["--workload", "/no/such/file"], "/no/such/file: No such file or directory"),
    ],
)
def test_mistake_is_named(cluster, arguments, text):
    result = _run("-f", cluster, *arguments)
    assert result.exit_code != 0
    assert text in " ".join(result.output.split())


def test_the_exit_status_shows_whether_any_fits_with_exit_code(cluster):
    assert _run("-f", cluster, "--requests", "cpu=1", "--exit-code").exit_code == 0
    assert _run("-f", cluster, "--requests", "cpu=99", "--exit-code").exit_code == 3
    assert _run("-f", cluster, "--requests", "cpu=99").exit_code == 0


def test_quotas_that_the_files_lack_are_named(tmp_path):
    arguments = ("-f", write_objects(tmp_path / "nodes.yaml", NODE), "--requests", "cpu=1")
    assert "resourcequotas" in _run(*arguments, "--feature-gates", "ResourceQuotaEstimate=true").stderr
    assert _run(*arguments).stderr == ""


def test_files_without_what_is_needed_are_named(cluster, tmp_path):
    assert (
        "cluster.yaml: expected one pod or workload with a pod template, found 0"
        in _run("-f", cluster, "--workload", cluster).output
    )
    assert "no nodes" in _run("-f", write_objects(tmp_path / "web.yaml", DEPLOYMENT)).output


def test_case_that_cannot_be_read_is_an_answer_too(tmp_path):
    path = tmp_path / "cases.jsonl"
    good = {"id": "m", "objects": [NODE], "requirements": {"resourceRequest": {"cpu": "1"}}}
    path.write_text(f"{{\n{json.dumps(good)}\n")
    first, second = map(json.loads, _run("--cases", path).output.splitlines())
    assert first["id"] == f"{path}:1"
    assert first["error"].startswith("not a case: ")
    assert second == {"id": "m", "replicas": 4, "general_replicas": 0}


def test_a_case_that_is_nested_too_deep_is_named_by_its_line(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text('{"objects": ' + "[" * 100_000 + "]" * 100_000 + '}\n{"objects": []}\n')
    first, _ = map(json.loads, _run("--cases", path).output.splitlines())
    assert first == {"id": f"{path}:1", "error": "not a case: nested too deep"}


def test_file_without_any_case_is_an_error(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text("nonsense")
    result = _run("--cases", path)
    assert result.exit_code == 1
    assert f"{path}: none of its lines is a case" in result.stderr


@pytest.mark.parametrize(("field", "message"), [("metadata", "metadata: expected"), ("spec", "spec: expected object")])
def test_a_workload_with_a_field_that_is_no_object_is_refused(tmp_path, field, message):
    workload = tmp_path / "pod.json"
    workload.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}} | {field: 5}))
    result = _run("-f", write_objects(tmp_path / "cluster.yaml", node("n1", "4")), "--workload", workload)
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr
    assert str(workload) in result.stderr


def _cluster_with_cpu(name, cpu):
    summary = {"allocatable": {"cpu": cpu, "pods": "99"}}
    return {**CLUSTER, "metadata": {"name": name}, "status": {"resourceSummary": summary}}


def test_several_cluster_objects_are_answered_one_by_one(tmp_path):
    first = write_objects(tmp_path / "1.yaml", _cluster_with_cpu("a", "3"), _cluster_with_cpu("b", "5"))
    second = write_objects(tmp_path / "2.yaml", _cluster_with_cpu("c", "7"))
    arguments = ("--cluster-object", first, "--cluster-object", second, "--requests", "cpu=2")
    lines = [" ".join(line.split()) for line in _run(*arguments).output.splitlines() if line.strip()]
    assert (lines[0], lines[2:]) == ("CLUSTER REPLICAS", ["a 1", "b 2", "c 3"])
    answers = json.loads(_run(*arguments, "--output", "json").output)["clusters"]
    assert answers[1] == {"cluster": "b", "general_replicas": 2}


def test_several_cluster_objects_do_not_go_with_the_nodes_of_one(cluster, tmp_path):
    path = write_objects(tmp_path / "1.yaml", _cluster_with_cpu("a", "3"), _cluster_with_cpu("b", "5"))
    result = _run("-f", cluster, "--cluster-object", path)
    assert result.exit_code == 2
    assert "nodes of a member need a single Cluster object" in result.output


@pytest.mark.parametrize("option", [("--models-semantics", "v1.11"), ("--as-karmada", "1.18")])
def test_rules_of_resource_models_go_with_a_cluster_object(cluster, option):
    result = _run("-f", cluster, *option)
    assert result.exit_code == 2
    assert "--models-semantics and --as-karmada go with --cluster-object" in result.output


def test_the_same_cluster_twice_is_refused(tmp_path):
    paths = [write_objects(tmp_path / f"{number}.yaml", _cluster_with_cpu("a", number)) for number in "12"]
    result = _run("--cluster-object", paths[0], "--cluster-object", paths[1], "--requests", "cpu=1")
    assert result.exit_code == 1
    assert "cluster a is given twice" in " ".join(result.output.split())


QUOTA_OF_TEAM = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {"name": "q", "namespace": "shop"},
    "spec": {"min": {"cpu": "2", "memory": "4Gi"}, "max": {"cpu": "1500m", "memory": "4Gi"}},
}


def test_accurate_mode_obeys_the_plugins_of_a_configuration(tmp_path):
    cluster = write_objects(tmp_path / "cluster.yaml", NODE, QUOTA_OF_TEAM)
    question = ("-f", cluster, "--requests", "cpu=500m,memory=1Gi", "-n", "shop", "--mode", "accurate")
    assert _run(*question).output == "8 replicas fit\n"
    assert _run(*question, "--config", "examples/config/capacity-scheduling.yaml").output.endswith("\n3 replicas fit\n")


def test_a_configuration_in_parity_mode_is_refused(cluster):
    result = _run("-f", cluster, "--config", "examples/config/capacity-scheduling.yaml")
    assert (result.exit_code, "go with --mode accurate" in result.output) == (2, True)


@pytest.mark.parametrize(("memory", "replicas"), [("20Gi", [7, 8, 10]), ("60Gi", [6, 4, 4])])
def test_the_tables_of_karmadas_documents_come_from_the_documented_command(memory, replicas):
    clusters = Path(__file__).parents[3] / "examples" / "karmada" / "clusters.yaml"
    options = ["--cluster-object", clusters, "--requests", f"cpu=3,memory={memory}", "--models-semantics", "v1.11"]
    result = run("estimate", *options, "-o", "json")
    assert [cluster["general_replicas"] for cluster in json.loads(result.stdout)["clusters"]] == replicas
