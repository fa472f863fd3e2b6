"""The library's cluster beyond its questions: placing several pods, patching objects, scores as a table."""

import sys
from types import SimpleNamespace

import pytest

from podium.engine.errors import ClusterError, ManifestError
from podium.insight import Cluster
from podium.objects.resource_types import NODES, PODS
from tests.manifests import node, pod

SCHEDULER = "default-scheduler"


def web(name="web", cpu="1", **fields):
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def test_schedule_says_where_a_pod_would_go_and_changes_nothing():
    cluster = Cluster.load([node("n1", "1"), node("n2", "8")])
    answer = cluster.schedule(web(cpu="2"))
    assert answer.node == "n2"
    assert answer.as_dict()["filter"]["n1"]["plugin"] == "NodeResourcesFit"
    assert cluster.pods == ()


def test_several_pods_are_placed_in_queue_order():
    cluster = Cluster.load([node("n1", "2")])
    urgent = web("urgent")
    urgent["spec"]["priority"] = 10
    placements = cluster.place([web("first"), web("second"), urgent])
    assert [(placement.pod.metadata.name, placement.node) for placement in placements] == [
        ("urgent", "n1"),
        ("first", "n1"),
        ("second", None),
    ]


@pytest.mark.parametrize(("preempt", "remaining_keys"), [(False, ["default/old"]), (True, ["default/urgent"])])
def test_victims_go_only_if_preemption_is_asked_for(preempt, remaining_keys):
    cluster = Cluster.load([node("n1", "1"), web("old", node="n1")])
    urgent = web("urgent")
    urgent["spec"]["priority"] = 10
    (placement,) = cluster.place([urgent], preempt=preempt)
    assert (placement.nominated_node, [victim.key for victim in placement.victims]) == ("n1", ["default/old"])
    assert [pod.key for pod in cluster.pods] == remaining_keys


def test_objects_are_patched_by_operations_or_merged():
    cluster = Cluster.load([node("n1", "1"), web("old", "1", node="n1")])
    cluster.patch("Node", "n1", [{"op": "add", "path": "/spec/unschedulable", "value": True}])
    cluster.patch("Node", "n1", {"metadata": {"labels": {"disk": "ssd"}}, "status": {"allocatable": {"cpu": "4"}}})
    patched = cluster.store.objects(NODES)["n1"]
    assert (patched.spec.unschedulable, patched.metadata.labels["disk"]) == (True, "ssd")
    assert patched.status.allocatable["cpu"] == "4"
    cluster.patch("Pod", "old", {"metadata": {"labels": {"app": "db"}}})
    old = cluster.store.objects(PODS)["default/old"]
    assert (old.node_name, old.metadata.labels) == ("n1", {"app": "db"})
    cluster.patch("Pod", "old", {"metadata": {"labels": {"app": None}}})
    assert cluster.store.objects(PODS)["default/old"].metadata.labels == {}


@pytest.mark.parametrize(
    ("kind", "name", "changes", "message"),
    [
        ("Node", "n2", {}, "there is no Node n2"),
        ("Nodes", "n1", {}, "no scheduler reads objects of kind 'Nodes'"),
        ("Node", "n1", [{"op": "remove", "path": "/spec/nothing/here"}], "the patch does not apply: KeyError"),
        ("Node", "n1", {"status": {"allocatable": {"cpu": "x"}}}, "x"),
    ],
)
def test_patches_that_cannot_be_applied_change_nothing(kind, name, changes, message):
    cluster = Cluster.load([node("n1", "1")])
    nodes = cluster.nodes
    with pytest.raises(ManifestError, match=message):
        cluster.patch(kind, name, changes)
    assert cluster.nodes == nodes


def test_a_fix_is_applied_by_its_patches():
    cluster = Cluster.load([node("n1", "4", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]), web("waits")])
    (waits,) = cluster.pods
    fix = cluster.fixes(waits).fixes[0]
    trial = cluster.fork()
    for edit in fix.edits:
        trial.patch(edit.object_kind, edit.name, edit.patch, edit.namespace)
    (waits,) = trial.pods
    assert trial.schedule(waits).node == fix.node
    assert cluster.schedule(web("waits")).node is None


def test_scores_are_records_with_the_winner_first():
    cluster = Cluster.load([node("n1", "2"), node("n2", "8"), node("n3", "0")])
    table = cluster.scores(web())
    assert table.node.tolist() == ["n2", "n1"]
    assert table.total[0] > table.total[1]
    names = table.dtype.names
    assert names[:2] == ("node", "total")
    assert "NodeResourcesFit" in names
    assert sum(int(table[0][name]) for name in names[2:]) == table.total[0]
    assert len(cluster.scores(web(cpu="99"))) == 0


def test_scores_of_a_running_pod_are_those_of_the_cluster_without_it():
    cluster = Cluster.load([node("n1", "2"), web("old", "2", node="n1")])
    (old,) = cluster.pods
    assert cluster.scores(old).node.tolist() == ["n1"]
    assert len(cluster.scores(web(cpu="1"))) == 0


def test_scores_become_a_data_frame(monkeypatch):
    calls = []
    frame = SimpleNamespace(from_records=lambda table, index: calls.append((len(table), index)) or "frame")
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    assert Cluster.load([node("n1")]).scores_frame(web()) == "frame"
    assert calls == [(1, "node")]


def test_a_data_frame_without_pandas_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ClusterError, match=r"pip install 'podium\[notebook\]'"):
        Cluster.load([node("n1")]).scores_frame(web())
