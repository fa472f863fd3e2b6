import json
from functools import partial

import pytest

from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

_run = partial(run, "estimator", "summary")


@pytest.fixture
def cluster(tmp_path):
    full = node("a", "4", memory="8Gi", pods="1")
    return write_objects(tmp_path / "c.yaml", full, node("b", "4", memory="64Gi"), pod("p", cpu="1", node="a"))


def _grades(*arguments):
    answer = json.loads(_run(*arguments, "-o", "json").output)
    return {item["grade"]: item["count"] for item in answer["resourceSummary"].get("allocatableModelings", ())}


def test_text_has_the_sums_and_the_grades(cluster):
    lines = [" ".join(line.split()) for line in _run("-f", cluster).output.splitlines() if line.strip()]
    assert lines[0].startswith("2 nodes,")
    assert "cpu 8 1 -" in lines
    assert lines[-1] == "Nodes by what they have left: 1 of grade 3"


def test_upstreams_fault_hides_the_nodes_behind_a_full_one(cluster):
    assert _grades("-f", cluster)[3] == 1
    assert sum(_grades("-f", cluster, "--as-karmada", "1.18").values()) == 0


def test_flag_and_gate_leave_out_what_karmada_leaves_out(cluster):
    assert _grades("-f", cluster, "--feature-gates", "CustomizedClusterResourceModeling=false") == {}
    result = _run("-f", cluster, "--enable-cluster-resource-modeling", "false", "-o", "json")
    assert json.loads(result.output) == {}
    assert _run("-f", cluster, "--enable-cluster-resource-modeling", "false").output == "Nothing is collected\n"


def test_grades_are_those_of_the_cluster_object(cluster, tmp_path):
    ranges = [[{"name": "cpu", "min": "0", "max": "4"}], [{"name": "cpu", "min": "4", "max": "9223372036854775807"}]]
    models = [{"grade": grade, "ranges": bounds} for grade, bounds in enumerate(ranges)]
    member = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "m"},
        "spec": {"resourceModels": models},
    }
    path = write_objects(tmp_path / "m.yaml", member)
    assert _grades("-f", cluster, "--cluster-object", path) == {0: 0, 1: 1}
    without_models = write_objects(tmp_path / "n.yaml", {**member, "spec": {}})
    assert _grades("-f", cluster, "--cluster-object", without_models) == {}


def test_a_file_without_nodes_is_refused(tmp_path):
    result = _run("-f", write_objects(tmp_path / "c.yaml", pod("p")))
    assert (result.exit_code, "no nodes" in result.output) == (1, True)
