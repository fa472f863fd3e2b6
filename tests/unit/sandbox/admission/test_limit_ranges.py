import pytest

from podium.sandbox.errors import ApiError
from tests.workload_manifests import claim


@pytest.fixture
def limit(store):
    def make(kind="Container", name="limits", **item):
        spec = {"limits": [{"type": kind} | item]}
        return store.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": spec})

    return make


def test_the_defaults_of_a_limit_range_follow_from_its_bounds(limit):
    [item] = limit(max={"cpu": "2"}, min={"cpu": "100m", "memory": "64Mi"}, default={"memory": "1Gi"})["spec"]["limits"]
    assert item["default"] == {"cpu": "2", "memory": "1Gi"}
    assert item["defaultRequest"] == {"cpu": "2", "memory": "1Gi"}
    [item] = limit(name="lower", min={"cpu": "100m"})["spec"]["limits"]
    assert (item["default"], item["defaultRequest"]) == ({}, {"cpu": "100m"})


def test_containers_get_the_amounts_that_they_lack(store, limit, pod):
    limit(default={"cpu": "2"}, defaultRequest={"cpu": "1", "memory": "1Gi"})
    sidecar = {"name": "proxy", "image": "proxy:1", "resources": {"requests": {"memory": "2Gi"}}}
    stored_pod = store.create(pod(initContainers=[sidecar]))
    main, proxy = stored_pod["spec"]["containers"][0], stored_pod["spec"]["initContainers"][0]
    assert main["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    assert proxy["resources"] == {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2"}}
    assert stored_pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu limit for container main; "
        "cpu request for init container proxy; cpu limit for init container proxy"
    )


def test_a_default_below_the_pods_own_request_is_refused(limit, refusal, pod):
    limit(default={"cpu": "500m"})
    message = refusal(pod({"requests": {"cpu": "1"}}))
    path = "spec.containers[0].resources.requests"
    assert f'{path}: Invalid value: "1": must be less than or equal to cpu limit of 500m' in message


@pytest.mark.parametrize(
    ("bounds", "resources", "reason"),
    [
        ({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}, "minimum cpu usage per Container is 1, but request is"),
        (
            {"max": {"cpu": "1"}},
            {"limits": {"cpu": "1500m"}},
            "maximum cpu usage per Container is 1, but limit is 1500m",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
    ],
)
def test_containers_outside_of_the_bounds_are_refused(limit, refusal, pod, bounds, resources, reason):
    limit(**bounds)
    message = refusal(pod(resources))
    assert message.startswith('pods "web" is forbidden: ')
    assert reason in message


def test_the_pod_as_a_whole_is_bounded(store, limit, refusal, pod):
    limit("Pod", max={"cpu": "1"}, min={"cpu": "200m"})
    assert refusal(pod({"requests": {"cpu": "100m"}})) == (
        'pods "web" is forbidden: [minimum cpu usage per Pod is 200m, but request is 100m, '
        "maximum cpu usage per Pod is 1.  No limit is specified]"
    )
    step = {"name": "step", "image": "step:1", "resources": {"limits": {"cpu": "1100m"}}}
    assert "but limit is 1100m" in refusal(pod({"limits": {"cpu": "600m"}}, initContainers=[step]))
    store.create(pod({"limits": {"cpu": "600m"}}))


def test_limits_hold_in_their_namespace_only(store, limit, pod):
    limit(max={"cpu": "1"})
    store.create(pod({"limits": {"cpu": "2"}}), namespace="other")


@pytest.mark.parametrize(
    ("bounds", "storage", "reason"),
    [
        (
            {"max": {"storage": "4Gi"}},
            "5Gi",
            "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi",
        ),
        (
            {"min": {"storage": "4Gi"}},
            "1Gi",
            "minimum storage usage per PersistentVolumeClaim is 4Gi, but request is 1Gi",
        ),
    ],
)
def test_claims_outside_of_the_bounds_are_refused(limit, refusal, bounds, storage, reason):
    limit("PersistentVolumeClaim", **bounds)
    assert refusal(claim(size=storage)) == f'persistentvolumeclaims "data" is forbidden: {reason}'


def test_a_claim_cannot_grow_out_of_its_bounds(store, limit):
    limit("PersistentVolumeClaim", max={"storage": "4Gi"})
    store.create(claim(size="4Gi"))
    with pytest.raises(ApiError, match="but request is 8Gi"):
        store.update(claim(size="8Gi"))


def test_a_limit_range_is_of_known_types_and_amounts(refusal):
    spec = {"limits": [{"type": "Node", "max": {"cpu": "x"}}]}
    message = refusal({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": spec})
    assert 'spec.limits[0].type: Unsupported value: "Node"' in message
    assert "spec.limits[0].max[cpu]" in message
