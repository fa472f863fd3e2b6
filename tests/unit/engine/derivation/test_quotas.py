import pytest

from podium.engine.derivation.control_objects import ControlObjects
from podium.engine.derivation.quotas import Quotas
from podium.engine.manifests import read_manifest
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.manifests import pod
from tests.workload_manifests import claim, quota


def _quotas(*quotas, existing=(), claims=()):
    def of_namespace(manifests, resource):
        typed_pod = [read_manifest(manifest, resource) for manifest in manifests]
        return lambda namespace: [namesake for namesake in typed_pod if namesake.metadata.namespace == namespace]

    pods = of_namespace(existing, PODS)
    return Quotas(ControlObjects(quotas), pods, of_namespace(claims, PERSISTENT_VOLUME_CLAIMS))


def _refusals(quotas, *pods, existing=()):
    quota_set = _quotas(*quotas, existing=existing)
    return [quota_set.refusal(read_manifest(pod, PODS), pod) for pod in pods]


def test_usage_is_read_from_the_status():
    limited = quota(usage={"cpu": "3"}, hard={"cpu": "4"})
    assert _refusals([limited], pod("a", "1"), existing=[pod("old", "4")]) == [""]
    assert _refusals([limited], pod("a", "1500m")) == [
        "exceeded quota: quota, requested: cpu=1500m, used: cpu=3, limited: cpu=4"
    ]


def test_usage_is_counted_without_a_status():
    limited = quota(hard={"pods": "2"})
    foreign_pod = pod("b")
    foreign_pod["metadata"]["namespace"] = "shop"
    assert _refusals([limited], pod("c"), existing=[pod("a"), foreign_pod]) == [""]
    assert _refusals([limited], pod("c"), existing=[pod("a"), pod("b")]) == [
        "exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2"
    ]


def test_only_accepted_pods_count():
    limited = quota(hard={"requests.memory": "3Gi"}, usage={"requests.memory": "0"})
    sizes = ("2Gi", "2Gi", "1Gi", "1Gi")
    message = _refusals([limited], *(pod(f"p-{size}", memory=size) for size in sizes))
    assert [bool(text) for text in message] == [False, True, False, True]
    assert "requested: requests.memory=1Gi, used: requests.memory=3Gi, limited: requests.memory=3Gi" in message[-1]


def test_a_pod_that_is_gone_gives_its_share_back():
    quotas = _quotas(quota(hard={"pods": "1"}, usage={"pods": "1"}))
    manifest = pod("a")
    typed_pod = read_manifest(manifest, PODS)
    assert quotas.refusal(typed_pod, manifest)
    quotas.on_pod_gone(typed_pod)
    assert quotas.refusal(typed_pod, manifest) == ""


def test_a_pod_that_is_gone_is_not_given_back_twice_where_pods_are_counted():
    existing = [pod("a"), pod("b")]
    quotas = _quotas(quota(hard={"pods": "2"}), existing=existing)
    deleted_pod = read_manifest(pod("gone"), PODS)  # the others are those that are left
    quotas.on_pod_gone(deleted_pod)
    assert quotas.refusal(read_manifest(pod("c"), PODS), pod("c"))


def test_a_pod_that_has_ended_takes_nothing_but_is_an_object():
    finished_pod = pod("ended", "4", status={"phase": "Succeeded"})
    assert _refusals([quota(hard={"pods": "1", "cpu": "1"})], pod("a", "1"), existing=[finished_pod]) == [""]
    assert _refusals([quota(hard={"count/pods": "1"})], pod("a"), existing=[finished_pod]) != [""]


def test_claims_that_exist_count_where_there_is_no_status_until_they_are_gone():
    quotas = _quotas(quota(hard={"requests.storage": "8Gi"}), claims=[claim("old", "5Gi")])
    assert "used: requests.storage=5Gi" in quotas.claim_refusal(claim("new", "4Gi"))
    quotas.on_claim_gone(read_manifest(claim("old", "5Gi"), PERSISTENT_VOLUME_CLAIMS))
    assert quotas.claim_refusal(claim("new", "4Gi")) == ""


def test_containers_must_state_what_a_quota_limits():
    limited = quota(hard={"limits.cpu": "9", "requests.memory": "9Gi"})
    assert _refusals([limited], pod("a")) == ["failed quota: quota: must specify limits.cpu for: main"]
    pod_with_amounts = pod("a", resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}})
    assert _refusals([limited], pod_with_amounts) == [""]


@pytest.mark.parametrize(
    ("scopes", "spec", "is_in"),
    [
        (["Terminating"], {"activeDeadlineSeconds": 5}, True),
        (["Terminating"], {}, False),
        (["NotTerminating"], {}, True),
        (["BestEffort"], {}, False),
        (["BestEffort"], {"containers": [{"name": "main"}]}, True),
        (["NotBestEffort"], {}, True),
        (["NotBestEffort"], {"containers": [{"name": "main"}]}, False),
        (["Invented"], {}, False),
    ],
)
def test_a_quota_counts_the_pods_of_its_scopes_only(scopes, spec, is_in):
    (message,) = _refusals([quota(hard={"pods": "0"}, scopes=scopes)], pod("a", **spec))
    assert bool(message) is is_in


@pytest.mark.parametrize(
    ("operator", "values", "name", "is_in"),
    [
        ("In", ["high"], "high", True),
        ("In", ["high"], "low", False),
        ("NotIn", ["high"], "low", True),
        ("NotIn", ["high"], "high", False),
        ("Exists", [], "low", True),
        ("Exists", [], "", False),
        ("DoesNotExist", [], "", True),
        ("DoesNotExist", [], "low", False),
    ],
)
def test_a_quota_may_be_for_priority_classes(operator, values, name, is_in):
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    limited = quota(hard={"pods": "0"}, scopeSelector={"matchExpressions": [expression]})
    (message,) = _refusals([limited], pod("a", priorityClassName=name))
    assert bool(message) is is_in


def test_claims_to_storage_are_counted_also_by_class():
    hard = {"requests.storage": "8Gi", "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}
    quotas = _quotas(quota(hard=hard, usage={"requests.storage": "0"}))
    assert quotas.claim_refusal(claim("a", "5Gi")) == ""
    name = "slow.storageclass.storage.k8s.io/persistentvolumeclaims"
    assert quotas.claim_refusal(claim("b", "1Gi")) == (
        f"exceeded quota: quota, requested: {name}=1, used: {name}=1, limited: {name}=1"
    )
    assert quotas.claim_refusal(claim("c", "4Gi", "fast")) == (
        "exceeded quota: quota, requested: requests.storage=4Gi, used: requests.storage=5Gi, "
        "limited: requests.storage=8Gi"
    )


def test_a_quota_of_another_namespace_or_an_amount_that_cannot_be_read_refuses_nothing():
    foreign_quota = quota(hard={"pods": "0"})
    foreign_quota["metadata"]["namespace"] = "shop"
    assert _refusals([foreign_quota, quota("broken", hard={"pods": "x"})], pod("a")) == [""]
