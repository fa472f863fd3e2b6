import pytest

from podium.sandbox.amounts import container_sums, pod_amounts
from podium.sandbox.defaults import set_defaults
from podium.sandbox.resources import resource_named


def container(cpu=None, memory=None, **fields):
    amounts = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount is not None}
    return {"name": "c", "image": "i", "resources": {"requests": amounts}} | fields


def test_containers_run_together_and_init_containers_one_by_one_beside_earlier_sidecars():
    spec = {
        "containers": [container("100m"), container("1", "1Gi")],
        "initContainers": [container("2"), container("500m", restartPolicy="Always"), container("1", "2Gi")],
    }
    # The two containers and the sidecar want 1600m, the first init container 2, the last one with the sidecar 1500m.
    assert container_sums(spec, "requests") == {"cpu": "2", "memory": "2Gi"}


def test_the_pods_own_amounts_replace_the_sums():
    spec = {"containers": [container("1", "1Gi")], "resources": {"requests": {"cpu": "3", "example.com/gpu": "1"}}}
    assert pod_amounts(spec, "requests") == {"cpu": "3", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "resources_after"),
    [
        # Without pod-level limits nothing is filled in.
        ({"requests": {"cpu": "3"}}, {"requests": {"cpu": "3"}}),
        # The containers' sum comes first, then the limit.
        (
            {"limits": {"cpu": "3", "memory": "4Gi"}},
            {"limits": {"cpu": "3", "memory": "4Gi"}, "requests": {"cpu": "1500m", "memory": "4Gi"}},
        ),
        (
            {"limits": {"memory": "4Gi"}, "requests": {"memory": "2Gi"}},
            {"limits": {"memory": "4Gi"}, "requests": {"memory": "2Gi", "cpu": "1500m"}},
        ),
        ({"limits": {"example.com/gpu": "1"}}, {"limits": {"example.com/gpu": "1"}, "requests": {"cpu": "1500m"}}),
        ({}, {}),
    ],
)
def test_pod_level_requests_default_to_the_containers_sums_and_then_to_the_limits(resources, resources_after):
    pod = {"metadata": {}, "spec": {"containers": [container("1"), container("500m")], "resources": resources}}
    set_defaults(resource_named("pods"), pod)
    assert pod["spec"]["resources"] == resources_after


def test_a_limit_of_huge_pages_defaults_to_the_containers_sum():
    amounts = {"hugepages-2Mi": "4Mi"}
    pages = {"name": "c", "image": "i", "resources": {"limits": amounts, "requests": amounts | {"cpu": "1"}}}
    pod = {"metadata": {}, "spec": {"containers": [pages, pages], "resources": {"requests": {"cpu": "2"}}}}
    set_defaults(resource_named("pods"), pod)
    resources = pod["spec"]["resources"]
    assert resources == {"limits": {"hugepages-2Mi": "8Mi"}, "requests": {"cpu": "2", "hugepages-2Mi": "8Mi"}}


def test_amounts_that_are_none_are_left_for_validation():
    pod = {"metadata": {}, "spec": {"containers": [container("x")], "resources": {"limits": {"cpu": "1"}}}}
    set_defaults(resource_named("pods"), pod)
    assert pod["spec"]["resources"] == {"limits": {"cpu": "1"}}
