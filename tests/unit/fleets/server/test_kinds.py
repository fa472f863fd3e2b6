"""Pods and nodes of a member in the form that its watch keeps."""

import orjson
import pytest

from podium.fleets.server.kinds import SHARED_NODES, SHARED_PODS
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.objects.wire import ObjectDecoder
from tests.manifests import node, pod


def read(resource, manifest, **metadata):
    manifest = {**manifest, "metadata": {**manifest["metadata"], "uid": "uid-1", **metadata}}
    (item,) = ObjectDecoder(resource).items(orjson.dumps([manifest])).items
    return item


def running(name="web-0", **metadata):
    return read(SHARED_PODS, pod(name, "1", node="n1", labels={"app": "web"}), **metadata)


@pytest.mark.parametrize("version", ["1", "10000000", "9" * 30, "012", "", "abc"])
def test_a_pod_on_a_node_has_the_metadata_that_decisions_read(version):
    item = running(resourceVersion=version, annotations={"a": "b"}, deletionTimestamp="2026-01-01T00:00:00Z")
    plain = read(PODS, pod("web-0", "1", node="n1", labels={"app": "web"}))
    assert (item.key, item.uid, item.node_name, item.spec) == (plain.key, plain.key, "n1", plain.spec)
    assert (item.metadata.name, item.metadata.namespace, item.metadata.labels) == ("web-0", "default", {"app": "web"})
    assert item.metadata.resource_version == version
    assert item.is_terminating
    assert item.metadata.deletion_timestamp == "2026-01-01T00:00:00Z"
    assert item.metadata.annotations == {}


def test_states_of_a_pod_differ_by_version_and_node():
    assert running(resourceVersion="7") == running(resourceVersion="7")
    assert running(resourceVersion="7") != running(resourceVersion="8")
    assert running("web-0") != running("web-1")
    assert not running().is_terminating


def test_a_pod_that_waits_keeps_its_uid_and_times():
    item = read(SHARED_PODS, pod("waits", "1"), creationTimestamp="2026-01-01T00:00:00Z", resourceVersion="7")
    assert (item.uid, item.key, item.metadata.resource_version) == ("uid-1", "default/waits", "7")
    assert item.metadata.creation_timestamp == "2026-01-01T00:00:00Z"


def test_a_pod_that_shares_its_metadata_can_be_bound_anew_as_any_other():
    on_n2 = running().on_node("n2")
    assert (type(on_n2), on_n2.key, on_n2.uid, on_n2.node_name) == (Pod, "default/web-0", "default/web-0", "n2")


def test_labels_of_a_node_are_those_on_the_wire():
    labels = {"kubernetes.io/hostname": "n1", "zone": "a", "other": "n1"}
    first, second = (
        read(SHARED_NODES, node(name, "4", labels={**labels, "kubernetes.io/hostname": name})) for name in ("n1", "n2")
    )
    wire = read(NODES, node("n1", "4", labels=labels)).metadata.labels
    assert first.metadata.labels == wire
    assert dict(first.metadata.labels) == dict(wire)
    assert second.metadata.labels != first.metadata.labels
    assert first.metadata.labels.get("absent") is None
    assert "zone" in first.metadata.labels
    assert first.metadata.labels == read(SHARED_NODES, node("n1", "4", labels=labels)).metadata.labels
    assert repr(first.metadata.labels) == repr(dict(wire))
