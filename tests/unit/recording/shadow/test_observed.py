import pytest

from podium.config import default_configuration
from podium.engine.cluster import Cluster
from podium.engine.errors import ManifestError
from podium.engine.manifests import read_manifest
from podium.engine.store import ObjectStore
from podium.objects.resource_types import NODES, PODS, SERVICES
from podium.recording.shadow import observed as observed_module
from podium.recording.shadow.observed import ObservedCluster
from tests.manifests import node, pod


@pytest.fixture
def cluster():
    return ObservedCluster(Cluster(default_configuration(), ObjectStore(())))


def put(cluster, resource, manifest, version="1"):
    metadata = {**manifest["metadata"], "resourceVersion": version}
    item = read_manifest({**manifest, "metadata": metadata}, resource)
    cluster.put(resource, item, 0.0)
    return item


def texts(cluster):
    return [str(item) for item in cluster.changes(0)]


def test_changes_are_described_in_words(cluster):
    put(cluster, NODES, node("n1"))
    put(cluster, PODS, pod("web"))
    binding = put(cluster, PODS, pod("web", node="n1"), "2")
    put(cluster, NODES, node("n1", "2"), "2")
    cluster.drop(PODS, binding, 0.0)
    assert texts(cluster) == [
        "Node n1 added",
        "Pod default/web added",
        "Pod default/web bound to n1",
        "Node n1 changed",
        "Pod default/web deleted",
    ]


def test_what_no_decision_reads_is_no_change(cluster):
    put(cluster, NODES, node("n1"))
    put(cluster, NODES, node("n1"), "2")
    put(cluster, PODS, pod("web", node="n1"))
    put(cluster, PODS, pod("web", node="n1", status={"phase": "Running"}), "2")
    assert texts(cluster) == ["Node n1 added", "Pod default/web added"]


def test_an_earlier_state_can_be_had_again(cluster):
    put(cluster, NODES, node("n1"))
    put(cluster, PODS, pod("web"))
    number = cluster.next_number
    binding = put(cluster, PODS, pod("web", node="n1"), "2")
    put(cluster, NODES, node("n2"))
    cluster.drop(PODS, binding, 0.0)
    state = cluster.state_before(number)
    assert state is not None
    assert [item.name for item in state.nodes] == ["n1"]
    assert [item.node_name for item in state.pods] == [""]
    assert [item.name for item in cluster.cluster.nodes] == ["n1", "n2"]
    assert not cluster.cluster.pods


def test_a_state_before_more_changes_than_are_kept_is_gone(cluster, monkeypatch):
    monkeypatch.setattr(observed_module, "CHANGES_KEPT", 2)
    short = ObservedCluster(cluster.cluster)
    for index in range(3):
        put(short, NODES, node(f"n{index}"))
    assert short.state_before(0) is None
    assert short.state_before(1) is not None


def test_a_node_that_cannot_be_read_any_more_is_gone(cluster):
    put(cluster, NODES, node("n1"))
    with pytest.raises(ManifestError):
        put(cluster, NODES, node("n1", "much"), "2")
    assert not cluster.cluster.nodes
    assert texts(cluster) == ["Node n1 added", "Node n1 deleted"]


def test_all_kinds_that_plugins_read_are_asked_for(cluster):
    assert {PODS, NODES, SERVICES} <= set(cluster.resources)
