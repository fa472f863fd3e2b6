import pytest

from podium.objects.pod_defaults import with_pod_defaults

MIB = 2**20


def _resources(pod_resources, *containers, **groups):
    spec = {"containers": [{"resources": resources} for resources in containers], **groups, "resources": pod_resources}
    return with_pod_defaults(spec)["resources"]


def _container(**resources):
    (container,) = with_pod_defaults({"containers": [{"resources": resources}]})["containers"]
    return container["resources"]


def test_a_container_requests_its_limits_where_it_requests_nothing():
    assert _container(limits={"cpu": "2", "example.com/gpu": 1})["requests"] == {"cpu": "2", "example.com/gpu": 1}
    assert _container(limits={"cpu": "2"}, requests={"cpu": "1"})["requests"] == {"cpu": "1"}
    assert _container(requests={"cpu": "1"}) == {"requests": {"cpu": "1"}}


def test_the_requests_of_a_pod_with_limits_are_its_containers_sums():
    resources = _resources({"limits": {"cpu": "4"}}, {"requests": {"cpu": "500m"}}, {"requests": {"cpu": "1"}})
    assert resources == {"limits": {"cpu": "4"}, "requests": {"cpu": "1500000000n"}}


def test_a_container_that_only_has_a_limit_counts_with_it():
    assert _resources({"limits": {"cpu": "4"}}, {"limits": {"cpu": "2"}})["requests"] == {"cpu": "2"}


def test_what_no_container_requests_is_the_limit():
    resources = _resources({"limits": {"cpu": "4", "memory": "1Gi"}}, {"requests": {"cpu": "1"}})
    assert resources["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_own_requests_stay_and_without_limits_none_are_added():
    assert _resources({"limits": {"cpu": "4"}, "requests": {"cpu": "3"}}, {"requests": {"cpu": "1"}})["requests"] == {
        "cpu": "3"
    }
    assert _resources({"requests": {"cpu": "3"}}, {"requests": {"memory": "1Mi"}}) == {"requests": {"cpu": "3"}}


def test_init_containers_count_as_in_the_sum_of_a_pod():
    pod_resources = {"limits": {"cpu": "9"}}
    init = [{"resources": {"requests": {"cpu": "3"}}}]
    assert _resources(pod_resources, {"requests": {"cpu": "1"}}, initContainers=init)["requests"] == {"cpu": "3"}
    sidecar = [{"resources": {"requests": {"cpu": "3"}}, "restartPolicy": "Always"}]
    assert _resources(pod_resources, {"requests": {"cpu": "1"}}, initContainers=sidecar)["requests"] == {"cpu": "4"}


def test_a_limit_of_huge_pages_is_the_sum_of_the_containers_limits():
    pages = {"hugepages-2Mi": "4Mi"}
    resources = _resources({"requests": {"cpu": "1"}}, {"limits": pages}, {"limits": pages})
    assert resources["limits"] == {"hugepages-2Mi": str(8 * MIB)}
    assert resources["requests"]["hugepages-2Mi"] == str(8 * MIB)


def test_devices_are_no_request_of_the_whole_pod():
    resources = _resources({"limits": {"cpu": "4", "example.com/gpu": "1"}})
    assert resources["requests"] == {"cpu": "4"}


@pytest.mark.parametrize("resources", [{}, {"claims": []}, {"limits": 5}, None, 5])
def test_resources_without_amounts_stay(resources):
    assert _resources(resources, {"limits": {"cpu": "1"}}) == resources


def test_amounts_that_cannot_be_read_are_left_for_the_decoder():
    pod_resources = {"limits": {"cpu": "4"}}
    assert _resources(pod_resources, {"requests": {"cpu": "x"}}) == pod_resources


def test_host_ports_are_those_of_containers_on_the_hosts_network():
    spec = {
        "hostNetwork": True,
        "containers": [{"ports": [{"containerPort": 80}, {"hostPort": 1, "containerPort": 2}, 5]}],
    }
    ports = with_pod_defaults(spec)["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "hostPort": 80}, {"hostPort": 1, "containerPort": 2}, 5]
    spec["hostNetwork"] = False
    assert "hostPort" not in with_pod_defaults(spec)["containers"][0]["ports"][0]
