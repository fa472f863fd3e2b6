"""Nodes of a catalogue's instance types in questions: how many pods fit on one, and which one is a fix."""

from __future__ import annotations

import json
from functools import partial

import pytest

import podium
from podium.engine.errors import ClusterError
from tests.gang_manifests import UPSTREAM, group, members
from tests.manifests import ZONE, node
from tests.manifests import pod as any_pod
from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import instance_type, node_pool

pod = partial(any_pod, scheduler=None)

DRIVER = "gpu.example.com"
GPUS = {DRIVER: {"count": 8, "attributes": {"model": "a100"}}}
TYPES = [
    instance_type("c-4", 4, "8Gi", zones=("zone-a",)),
    {**instance_type("g-16", 16, "64Gi", price=5.0, zones=("zone-a",)), "devices": GPUS},
]
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpus", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 3}}]}}},
}
CLAIMING = pod("train", "500m", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
OBJECTS = [node("n1", "2", labels={ZONE: "zone-a"}), CLASS, TEMPLATE, CLAIMING]
POOL = {"apiVersion": "karpenter.sh/v1", **node_pool("gpu", limits={"cpu": "16"})}


def fits(entries) -> dict[str, int]:
    return {entry.node.type: entry.fits for entry in entries}


def test_devices_of_an_instance_type_count() -> None:
    cluster = podium.Cluster.load(OBJECTS)
    assert fits(cluster.new_nodes("default/train", TYPES)) == {"c-4": 0, "g-16": 2}
    assert cluster.capacity("default/train").fits == 0
    assert len(cluster.nodes) == 1


def test_extended_resources_of_a_device_class_count() -> None:
    by_resource = {**CLASS, "spec": {**CLASS["spec"], "extendedResourceName": "example.com/gpu"}}
    amounts = {"cpu": "500m", "example.com/gpu": "3"}
    container = {"name": "main", "image": "app", "resources": {"requests": amounts, "limits": amounts}}
    asking = pod("train", containers=[container])
    entries = podium.Cluster.load([node("n1", "2"), by_resource, asking]).new_nodes(asking, TYPES)
    assert fits(entries) == {"c-4": 0, "g-16": 2}


def test_limits_taints_and_labels_of_node_pools_count() -> None:
    cluster = podium.Cluster.load(OBJECTS)
    small = {**POOL, "spec": {**POOL["spec"], "limits": {"cpu": "8"}}}
    assert fits(cluster.new_nodes("default/train", TYPES, [small])) == {"c-4": 0}
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert (
        cluster.new_nodes("default/train", TYPES, [{"apiVersion": POOL["apiVersion"], **node_pool(taints=[taint])}])
        == []
    )
    chooser = pod("web", "1", nodeSelector={"team": "a"})
    team_pool = {"apiVersion": POOL["apiVersion"], **node_pool(labels={"team": "a"})}
    assert cluster.new_nodes(chooser, TYPES) == []
    assert fits(cluster.new_nodes(chooser, TYPES, [team_pool])) == {"c-4": 3, "g-16": 5}


def test_pods_of_daemon_sets_take_their_part_of_a_new_node() -> None:
    agent = pod("agent", "2")
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": agent["spec"]},
        },
    }
    asking = pod("web", "1")
    cluster = podium.Cluster.load([node("n1", "2"), daemons])
    assert fits(cluster.new_nodes(asking, TYPES[:1])) == {"c-4": 1}


def test_a_fix_names_the_type_of_the_node_to_add() -> None:
    cluster = podium.Cluster.load(OBJECTS)
    edits = [entry.node.edit for entry in cluster.new_nodes("default/train", TYPES)]
    (fix,) = cluster.fixes("default/train", new_nodes=edits).fixes
    (edit,) = fix.edits
    assert edit.text == "add one node of type g-16 (zone-a, spot) for 3.5000 per hour"
    assert fix.node == edit.name


def test_a_whole_gang_is_refused_by_name() -> None:
    cluster = podium.Cluster.load([node("n1", "2"), group(UPSTREAM, 2), *members(UPSTREAM, 2, scheduler=None)])
    edits = [entry.node.edit for entry in cluster.new_nodes("default/train-0", TYPES)]
    with pytest.raises(ClusterError, match="podium plan --rules podium says"):
        cluster.fixes("default/train-0", new_nodes=edits)


def test_a_catalogue_that_cannot_be_read_is_an_error_that_names_the_field() -> None:
    with pytest.raises(ClusterError, match=r"\[0\]"):
        podium.Cluster.load(OBJECTS).new_nodes("default/train", [{"name": "c-4"}])


@pytest.fixture
def files(tmp_path):
    cluster = write_objects(tmp_path / "cluster.yaml", *OBJECTS, POOL)
    asking = write_objects(tmp_path / "pod.yaml", CLAIMING)
    types = tmp_path / "types.json"
    types.write_text(json.dumps(TYPES))
    return cluster, asking, str(types)


def test_the_commands_answer_with_the_node_pools_of_the_cluster(files) -> None:
    cluster, asking, types = files
    answer = run("capacity", "-f", cluster, "--pod", asking, "--catalogue", types, "-o", "json")
    entries = {entry["type"]: (entry["pool"], entry["fits"]) for entry in json.loads(answer.stdout)["new_nodes"]}
    assert entries == {"c-4": ("gpu", 0), "g-16": ("gpu", 2)}
    text = run("capacity", "-f", cluster, "--pod", asking, "--catalogue", types).stdout
    assert "g-16 (zone-a, " in text
    assert ") of NodePool gpu" in text
    fix = run("why", "train", "-f", cluster, "--fix", "--catalogue", types)
    assert "add one node of type g-16 (zone-a, " in fix.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("capacity", "--together"), "asks about each pod alone"),
        (("why", "train"), "--catalogue goes with --fix"),
    ],
)
def test_options_that_do_not_go_together_are_refused(files, arguments, message) -> None:
    cluster, asking, types = files
    pods = ("--pod", asking) if arguments[0] == "capacity" else ()
    result = run(*arguments, "-f", cluster, *pods, "--catalogue", types)
    assert result.exit_code == 2
    assert message in result.stderr
