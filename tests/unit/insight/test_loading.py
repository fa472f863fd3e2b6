import pytest

from podium.config import default_configuration
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import LocatedManifest
from podium.insight.loading import Loader, node_named, pod_named
from podium.plugins import IN_TREE
from tests.manifests import node, pod


def loader(**options):
    return Loader(default_configuration(), IN_TREE, **options)


def with_origins(*objects):
    return [LocatedManifest(item, f"dump: items[{index}]") for index, item in enumerate(objects)]


def test_broken_objects_are_named_and_the_rest_is_loaded():
    broken_node = node("n2")
    broken_node["status"]["allocatable"]["cpu"] = "many"
    result = loader().read(with_origins(node("n1"), broken_node, pod("web", priority="high")))
    assert [node.name for node in result.cluster.nodes] == ["n1"]
    first, second = result.read_errors
    assert first.startswith("dump: items[1]: Node n2: status.allocatable")
    assert second.startswith("dump: items[2]: Pod default/web: spec.priority")


def test_a_misspelt_field_of_an_object_that_no_api_server_has_admitted_is_an_error():
    new_pod, old_pod = pod("web", nodeSelecter={"disk": "ssd"}), pod("old", nodeSelecter={"disk": "ssd"})
    old_pod["metadata"]["uid"] = "u1"
    result = loader().read(with_origins(node("n1"), new_pod, old_pod))
    error = "dump: items[1]: Pod default/web: spec.nodeSelecter: unknown field; did you mean nodeSelector?"
    assert list(result.read_errors) == [error]
    with pytest.raises(ManifestError, match=r"spec\.nodeSelecter: unknown field"):
        result.read_pod(LocatedManifest(new_pod, "pod.yaml"))
    with pytest.raises(ManifestError, match=r"spec\.nodeSelecter: unknown field"):
        result.cluster.evaluate(new_pod)


def test_a_claim_that_an_api_server_would_refuse_is_an_error():
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "shop"},
        "spec": {"devices": {"requests": [request]}},
    }
    (error,) = loader().read(with_origins(node("n1"), claim)).read_errors
    assert error.startswith("dump: items[1]: ResourceClaim shop/c: spec.devices.requests[0].exactly.count: 2 must not")


def test_a_cluster_without_a_readable_node_is_refused_with_what_is_broken():
    broken_node = node("n1")
    broken_node["status"]["allocatable"]["cpu"] = "many"
    with pytest.raises(ManifestError, match=r"no nodes: .*; 1 objects could not be read: dump: items\[0\]"):
        loader().read(with_origins(broken_node))


def test_without_a_configuration_one_profile_decides_for_every_scheduler():
    (target,) = with_origins(pod("web", scheduler="theirs"))
    result = loader(any_scheduler=True).read(with_origins(node("n1"), pod("old", scheduler="ours")), [target])
    web = result.read_pod(target)
    assert result.cluster.capacity(web).fits
    with pytest.raises(ClusterError, match="no profile is named 'theirs'"):
        loader().read(with_origins(node("n1")), [target]).cluster.capacity(web)


def test_missing_kinds_that_the_answer_depends_on_are_listed():
    result = loader().read(with_origins(node("n1"), pod("web", scheduler=None)))
    result.cluster.evaluate(pod("new", scheduler=None))
    assert "services" in result.missing_kinds()


def test_unknown_names_are_refused_with_the_nearest_ones():
    objects = with_origins(node("worker-1"), node("worker-2"), pod("web-1"), pod("web-2"))
    cluster = loader().read(objects).cluster
    assert pod_named(cluster, "web-1", "default").key == pod_named(cluster, "default/web-1", "x").key == "default/web-1"
    assert node_named(cluster, "worker-1").name == "worker-1"
    with pytest.raises(
        ClusterError, match=r"there is no pod default/web-3; did you mean default/web-2, default/web-1\?"
    ):
        pod_named(cluster, "web-3", "default")
    with pytest.raises(ClusterError, match=r"there is no pod other/web-1; did you mean default/web-1"):
        pod_named(cluster, "web-1", "other")
    with pytest.raises(ClusterError, match=r"there is no node worker-3; did you mean worker-2, worker-1\?"):
        node_named(cluster, "worker-3")
    with pytest.raises(ClusterError, match=r"there is no node zzz$"):
        node_named(cluster, "zzz")
