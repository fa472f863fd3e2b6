"""The library's plans of nodes to buy: those of the command, about the cluster as it is now."""

import json

import pytest

from podium import Cluster
from podium.engine.errors import ClusterError
from podium.library.planned_objects import objects_to_plan
from tests.manifests import ZONE, node
from tests.unit.cli.commands import run, write_objects
from tests.unit.library.workloads import deployment
from tests.unit.provisioner import clusters as karpenter

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}}

VERSIONS = {"NodePool": "karpenter.sh/v1", "DaemonSet": "apps/v1"}


def with_versions(*objects):
    return [{"apiVersion": VERSIONS.get(item["kind"], "v1"), **item} for item in objects]


def plannable():
    pods = (karpenter.pod("web", cpu="1"), karpenter.pod("db", cpu="3"))
    daemon_set = karpenter.daemon_set("agent", cpu="100m")
    return with_versions(karpenter.node_pool(), karpenter.node("n1", cpu="1"), *pods, daemon_set)


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_a_plan_is_that_of_the_command(rules, tmp_path):
    objects, catalogue = plannable(), list(karpenter.TYPES)
    types = tmp_path / "types.json"
    types.write_text(json.dumps(catalogue))
    arguments = ("-f", write_objects(tmp_path / "c", *objects), "--catalogue", types, "--rules", rules, "-o", "json")
    result = run("plan", *arguments)
    assert result.exit_code == 0, result.output
    cluster = Cluster.load(objects)
    pods = cluster.pods
    plan = cluster.plan(catalogue=types, rules=rules).as_dict()
    assert plan == json.loads(result.stdout)
    assert plan["new_nodes"]
    assert cluster.fork().plan(catalogue=catalogue, rules=rules).as_dict() == plan
    assert cluster.pods == pods


def test_a_plan_is_about_the_cluster_as_it_is_now(tmp_path):
    nodes = [node("n1", "4", labels={ZONE: "a"}), node("n2", "4", labels={ZONE: "a"})]
    cluster = Cluster.load(nodes)
    cluster.add(deployment(replicas=10))
    plan = cluster.plan(adopt_nodes=True, assume_unschedulable=True, rules="podium").as_dict()
    assert (len(plan["new_nodes"]), sorted(plan["existing"])) == (1, ["n1", "n2"])
    cluster.remove("Node", "n2")
    plan = cluster.plan(adopt_nodes=True, assume_unschedulable=True, rules="podium").as_dict()
    assert (len(plan["new_nodes"]), sorted(plan["existing"])) == (2, ["n1"])
    plan_with_deployment = Cluster.load(nodes).plan(adopt_nodes=True, add=deployment(replicas=10)).as_dict()
    assert sum(len(new_node["pods"]) for new_node in plan_with_deployment["new_nodes"]) == 2
    path = write_objects(tmp_path / "web.yaml", deployment(replicas=10))
    assert Cluster.load(nodes).plan(adopt_nodes=True, add=path, rules="podium").as_dict()["new_nodes"]


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_defaults_and_claims_of_what_is_added_are_those_of_the_cluster(rules, tmp_path):
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}}
    limits["spec"] = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}
    objects = [*with_versions(karpenter.node_pool(), karpenter.node("n1", cpu="1")), limits]
    bare = deployment(replicas=2)
    del bare["spec"]["template"]["spec"]["containers"][0]["resources"]
    types = tmp_path / "types.json"
    types.write_text(json.dumps(list(karpenter.TYPES)))
    files = (
        "-f",
        write_objects(tmp_path / "c", *objects),
        "--add",
        write_objects(tmp_path / "a", bare),
        "--catalogue",
        types,
    )
    result = run("plan", *files, "--rules", rules, "-o", "json")
    plan = Cluster.load(objects).plan(add=bare, catalogue=types, rules=rules).as_dict()
    assert plan == json.loads(result.stdout)
    assert sum(len(node["pods"]) for node in plan["new_nodes"]) == 2


def test_fields_that_only_a_plan_reads_are_kept_when_an_object_changes():
    (machine,) = with_versions(karpenter.node("n1"))
    machine["spec"]["providerID"] = "kwok://n1"
    cluster = Cluster.load([machine])
    cluster.patch("Node", "n1", {"spec": {"unschedulable": True}})
    (node_manifest,) = [
        document.manifest
        for document in objects_to_plan(cluster, cluster._state.originals)
        if document.manifest["kind"] == "Node"
    ]
    assert (node_manifest["spec"]["providerID"], node_manifest["spec"]["unschedulable"]) == ("kwok://n1", True)
    assert "unschedulable" not in machine["spec"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "there are no NodePools, so nothing can be bought: give node_pools, or adopt_nodes=True"),
        ({"rules": "cluster-autoscaler"}, "rules: expected karpenter or podium, got 'cluster-autoscaler'"),
        (
            {"node_pools": with_versions(karpenter.node_pool()), "adopt_nodes": True},
            "give either node_pools or adopt_nodes",
        ),
        ({"adopt_nodes": True, "catalogue": "nowhere"}, "nowhere"),
        ({"adopt_nodes": True, "add": [SECRET]}, "add: expected pods or workloads, found Secret"),
    ],
)
def test_half_a_question_about_a_plan_is_refused(options, error):
    with pytest.raises(ClusterError, match=error):
        Cluster.load([node("n1")]).plan(**options)


def test_what_has_node_pools_or_no_nodes_cannot_adopt_any():
    with pytest.raises(ClusterError, match="this cluster has NodePools"):
        Cluster.load(with_versions(karpenter.node_pool(), karpenter.node("n1"))).plan(adopt_nodes=True)
    with pytest.raises(ClusterError, match="this cluster has no nodes"):
        Cluster.load([]).plan(adopt_nodes=True)
