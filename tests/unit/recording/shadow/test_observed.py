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
def observed():
    return ObservedCluster(Cluster(default_configuration(), ObjectStore(())))


def put(observed, resource, manifest, version="1"):
    metadata = {**manifest["metadata"], "resourceVersion": version}
    item = read_manifest({**manifest, "metadata": metadata}, resource)
    observed.put(resource, item, 0.0)
    return item


def texts(observed):
    return [str(each) for each in observed.changes(0)]


def test_changes_are_described_in_words(observed):
    put(observed, NODES, node("n1"))
    put(observed, PODS, pod("web"))
    bound = put(observed, PODS, pod("web", node="n1"), "2")
    put(observed, NODES, node("n1", "2"), "2")
    observed.drop(PODS, bound, 0.0)
    assert texts(observed) == [
        "Node n1 added",
        "Pod default/web added",
        "Pod default/web bound to n1",
        "Node n1 changed",
        "Pod default/web deleted",
    ]


def test_what_no_decision_reads_is_no_change(observed):
    put(observed, NODES, node("n1"))
    put(observed, NODES, node("n1"), "2")
    put(observed, PODS, pod("web", node="n1"))
    put(observed, PODS, pod("web", node="n1", status={"phase": "Running"}), "2")
    assert texts(observed) == ["Node n1 added", "Pod default/web added"]


def test_an_earlier_state_can_be_had_again(observed):
    put(observed, NODES, node("n1"))
    put(observed, PODS, pod("web"))
    number = observed.next_number
    bound = put(observed, PODS, pod("web", node="n1"), "2")
    put(observed, NODES, node("n2"))
    observed.drop(PODS, bound, 0.0)
    before = observed.state_before(number)
    assert before is not None
    assert [each.name for each in before.nodes] == ["n1"]
    assert [each.node_name for each in before.pods] == [""]
    assert [each.name for each in observed.cluster.nodes] == ["n1", "n2"]
    assert not observed.cluster.pods


def test_a_state_before_more_changes_than_are_kept_is_gone(observed, monkeypatch):
    monkeypatch.setattr(observed_module, "CHANGES_KEPT", 2)
    short = ObservedCluster(observed.cluster)
    for index in range(3):
        put(short, NODES, node(f"n{index}"))
    assert short.state_before(0) is None
    assert short.state_before(1) is not None


def test_a_node_that_cannot_be_read_any_more_is_gone(observed):
    put(observed, NODES, node("n1"))
    with pytest.raises(ManifestError):
        put(observed, NODES, node("n1", "much"), "2")
    assert not observed.cluster.nodes
    assert texts(observed) == ["Node n1 added", "Node n1 deleted"]


def test_all_kinds_that_plugins_read_are_asked_for(observed):
    assert {PODS, NODES, SERVICES} <= set(observed.resources)
