import pytest

from podium.engine.derivation.control_objects import ControlObjects
from podium.engine.derivation.quotas import Quotas
from podium.engine.manifests import read_manifest
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.manifests import pod
from tests.workload_manifests import claim, quota


def _quotas(*quotas, existing=(), claims=()):
    def of_namespace(manifests, resource):
        typed = [read_manifest(manifest, resource) for manifest in manifests]
        return lambda namespace: [each for each in typed if each.metadata.namespace == namespace]

    pods = of_namespace(existing, PODS)
    return Quotas(ControlObjects(quotas), pods, of_namespace(claims, PERSISTENT_VOLUME_CLAIMS))


def _refusals(quotas, *pods, existing=()):
    asked = _quotas(*quotas, existing=existing)
    return [asked.refusal(read_manifest(pod, PODS), pod) for pod in pods]


def test_usage_is_read_from_the_status():
    limited = quota(used={"cpu": "3"}, hard={"cpu": "4"})
    assert _refusals([limited], pod("a", "1"), existing=[pod("old", "4")]) == [""]
    assert _refusals([limited], pod("a", "1500m")) == [
        "exceeded quota: quota, requested: cpu=1500m, used: cpu=3, limited: cpu=4"
    ]


def test_usage_is_counted_without_a_status():
    limited = quota(hard={"pods": "2"})
    other = pod("b")
    other["metadata"]["namespace"] = "shop"
    assert _refusals([limited], pod("c"), existing=[pod("a"), other]) == [""]
    assert _refusals([limited], pod("c"), existing=[pod("a"), pod("b")]) == [
        "exceeded quota: quota, requested: pods=1, used: pods=2, limited: pods=2"
    ]


def test_only_accepted_pods_count():
    limited = quota(hard={"requests.memory": "3Gi"}, used={"requests.memory": "0"})
    sizes = ("2Gi", "2Gi", "1Gi", "1Gi")
    said = _refusals([limited], *(pod(f"p-{size}", memory=size) for size in sizes))
    assert [bool(each) for each in said] == [False, True, False, True]
    assert "requested: requests.memory=1Gi, used: requests.memory=3Gi, limited: requests.memory=3Gi" in said[-1]


def test_a_pod_that_is_gone_gives_its_share_back():
    asked = _quotas(quota(hard={"pods": "1"}, used={"pods": "1"}))
    manifest = pod("a")
    typed = read_manifest(manifest, PODS)
    assert asked.refusal(typed, manifest)
    asked.on_pod_gone(typed)
    assert asked.refusal(typed, manifest) == ""


def test_a_pod_that_is_gone_is_not_given_back_twice_where_pods_are_counted():
    existing = [pod("a"), pod("b")]
    asked = _quotas(quota(hard={"pods": "2"}), existing=existing)
    gone = read_manifest(pod("gone"), PODS)  # the others are those that are left
    asked.on_pod_gone(gone)
    assert asked.refusal(read_manifest(pod("c"), PODS), pod("c"))


def test_a_pod_that_has_ended_takes_nothing_but_is_an_object():
    ended = pod("ended", "4", status={"phase": "Succeeded"})
    assert _refusals([quota(hard={"pods": "1", "cpu": "1"})], pod("a", "1"), existing=[ended]) == [""]
    assert _refusals([quota(hard={"count/pods": "1"})], pod("a"), existing=[ended]) != [""]


def test_claims_that_exist_count_where_there_is_no_status_until_they_are_gone():
    asked = _quotas(quota(hard={"requests.storage": "8Gi"}), claims=[claim("old", "5Gi")])
    assert "used: requests.storage=5Gi" in asked.claim_refusal(claim("new", "4Gi"))
    asked.on_claim_gone(read_manifest(claim("old", "5Gi"), PERSISTENT_VOLUME_CLAIMS))
    assert asked.claim_refusal(claim("new", "4Gi")) == ""


def test_containers_must_state_what_a_quota_limits():
    limited = quota(hard={"limits.cpu": "9", "requests.memory": "9Gi"})
    assert _refusals([limited], pod("a")) == ["failed quota: quota: must specify limits.cpu for: main"]
    whole = pod("a", resources={"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}})
    assert _refusals([limited], whole) == [""]


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
    (said,) = _refusals([quota(hard={"pods": "0"}, scopes=scopes)], pod("a", **spec))
    assert bool(said) is is_in


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
    (said,) = _refusals([limited], pod("a", priorityClassName=name))
    assert bool(said) is is_in


def test_claims_to_storage_are_counted_also_by_class():
    hard = {"requests.storage": "8Gi", "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}
    asked = _quotas(quota(hard=hard, used={"requests.storage": "0"}))
    assert asked.claim_refusal(claim("a", "5Gi")) == ""
    name = "slow.storageclass.storage.k8s.io/persistentvolumeclaims"
    assert asked.claim_refusal(claim("b", "1Gi")) == (
        f"exceeded quota: quota, requested: {name}=1, used: {name}=1, limited: {name}=1"
    )
    assert asked.claim_refusal(claim("c", "4Gi", "fast")) == (
        "exceeded quota: quota, requested: requests.storage=4Gi, used: requests.storage=5Gi, "
        "limited: requests.storage=8Gi"
    )


def test_a_quota_of_another_namespace_or_an_amount_that_cannot_be_read_refuses_nothing():
    other = quota(hard={"pods": "0"})
    other["metadata"]["namespace"] = "shop"
    assert _refusals([other, quota("broken", hard={"pods": "x"})], pod("a")) == [""]
