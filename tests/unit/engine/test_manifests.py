import pytest

from podium.engine.errors import ManifestError
from podium.engine.manifests import read_manifest, resource_of
from podium.objects.resource_types import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from tests.manifests import node, pod


def test_namespaced_object_lives_in_default_unless_it_says_otherwise():
    assert read_manifest(pod("a"), PODS).key == "default/a"
    assert read_manifest({"metadata": {"name": "a", "namespace": "shop"}}, PODS).key == "shop/a"
    assert read_manifest({"metadata": {"name": "c"}}, PERSISTENT_VOLUME_CLAIMS).key == "default/c"


def test_object_of_the_whole_cluster_gets_no_namespace():
    assert read_manifest(node("n1"), NODES).metadata.namespace == ""


def test_objects_without_a_uid_get_one_each():
    uids = {read_manifest(pod(name), PODS).uid for name in "abc"} | {read_manifest(node("a"), NODES).uid}
    assert len(uids) == 4
    assert "" not in uids


def test_uid_that_is_there_stays():
    assert read_manifest({"metadata": {"name": "a", "uid": "u1"}}, PODS).uid == "u1"


def test_nulls_count_as_absent():
    read = read_manifest(
        {"metadata": {"name": "a", "labels": {"x": None}}, "spec": {"containers": None, "tolerations": [None]}}, PODS
    )
    assert (read.spec.containers, read.spec.tolerations, read.metadata.labels) == ((), (), {})


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ({"metadata": {"name": "a"}, "spec": {"priority": "high"}}, "Pod default/a: spec.priority: expected int"),
        ({"metadata": {}}, "Pod: metadata.name: required"),
        ({"metadata": []}, "Pod: metadata.name: required"),
        ({"metadata": {"name": False}}, "Pod default/False: metadata.name: expected str, got bool"),
        ({"metadata": "a"}, "Pod: metadata: expected an object, got str"),
        (["a"], "Pod: expected an object, got list"),
        ({"metadata": {"name": 7}}, "Pod default/7: metadata.name: expected str, got int"),
    ],
)
def test_broken_object_is_named_with_its_field(manifest, text):
    with pytest.raises(ManifestError) as error:
        read_manifest(manifest, PODS)
    assert str(error.value).startswith(text)


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "serving.knative.dev/v1", "kind": "Service"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1"},
        {"kind": "Pod"},
        {"apiVersion": 1, "kind": ["Pod"]},
    ],
)
def test_object_that_no_scheduler_reads_belongs_to_no_resource(manifest):
    assert resource_of(manifest) is None


def test_resource_is_found_by_group_and_kind_whatever_the_version():
    assert resource_of({"apiVersion": "v1", "kind": "Pod"}) is PODS
    resource = resource_of({"apiVersion": "storage.k8s.io/v1beta1", "kind": "CSIStorageCapacity"})
    assert resource is not None
    assert resource.kind == "CSIStorageCapacity"
