import msgspec
import pytest

from podium.insight.json_patch import apply_patch
from podium.insight.requests import least_request, resize
from podium.objects.amounts import amount_text
from podium.objects.core import Pod
from podium.objects.requests import filter_requests
from tests.builders import pod


def containers(**amounts):
    return [{"name": name, "resources": {"requests": {"cpu": amount}}} for name, amount in amounts.items()]


def after(item, resource, total):
    return msgspec.convert(apply_patch(msgspec.to_builtins(item), resize(item, resource, total)), Pod)


@pytest.mark.parametrize("total", [0, 1, 499, 500, 1200, 2999, 3000, 5000])
def test_the_pod_requests_the_total_afterwards(total):
    spec = {"containers": containers(a="1", b="2"), "initContainers": containers(first="2500m")}
    item = pod("web", spec=spec)
    cpu = filter_requests(after(item, "cpu", total).spec).get("cpu", 0)
    assert cpu == total


def test_a_reduction_takes_from_the_largest_container_first():
    item = pod("web", spec={"containers": containers(a="1", b="2")})
    assert resize(item, "cpu", 2500) == (
        {"op": "add", "path": "/spec/containers/1/resources/requests/cpu", "value": "1500m"},
    )


def test_sidecars_count_beside_the_init_containers_after_them():
    sidecar = {**containers(s="1")[0], "restartPolicy": "Always"}
    spec = {"containers": containers(a="1"), "initContainers": [sidecar, *containers(first="4")]}
    item = pod("web", spec=spec)
    assert filter_requests(item.spec)["cpu"] == 5000
    assert filter_requests(after(item, "cpu", 1500).spec)["cpu"] == 1500


def test_overhead_cannot_be_reduced():
    item = pod("web", spec={"containers": containers(a="1"), "overhead": {"cpu": "500m"}})
    assert filter_requests(after(item, "cpu", 700).spec)["cpu"] == 700
    assert resize(item, "cpu", 400) is None


def test_requests_of_the_pod_as_a_whole_are_changed_with_those_of_its_containers():
    spec = {"containers": containers(a="1", b="1"), "resources": {"requests": {"cpu": "4"}}}
    item = pod("web", spec=spec)
    reduced = after(item, "cpu", 1500)
    assert filter_requests(reduced.spec)["cpu"] == 1500
    assert sum(int(str(container.resources.requests["cpu"]).rstrip("m")) for container in reduced.spec.containers) in (
        1500,
        501,
    )
    assert filter_requests(after(item, "cpu", 6000).spec)["cpu"] == 6000


def test_limits_of_resources_that_cannot_be_overcommitted_follow():
    amounts = {"example.com/gpu": "2", "memory": "1Gi"}
    container = {"name": "a", "resources": {"requests": amounts, "limits": amounts}}
    item = pod("web", spec={"containers": [container]})
    assert [operation["path"] for operation in resize(item, "example.com/gpu", 1)] == [
        "/spec/containers/0/resources/requests/example.com~1gpu",
        "/spec/containers/0/resources/limits/example.com~1gpu",
    ]
    assert len(resize(item, "memory", 1 << 20)) == 1


def test_nothing_can_be_added_where_nothing_is_requested():
    assert resize(pod("web"), "cpu", 100) is None


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 3 << 20, "3Mi"),
        ("memory", 1000, "1000"),
        ("pods", 4, "4"),
    ],
)
def test_amounts_are_written_as_quantities(resource, amount, text):
    assert amount_text(resource, amount) == text


def test_no_container_is_left_without_a_device():
    def gpus(name, count):
        return {"name": name, "resources": {"requests": {"example.com/gpu": count, "cpu": "1"}}}

    item = pod("web", spec={"containers": [gpus("a", "3"), gpus("b", "1")], "initContainers": [gpus("first", "4")]})
    assert (least_request(item, "example.com/gpu"), least_request(item, "cpu")) == (2, 0)
    reduced = after(item, "example.com/gpu", 3)
    assert [container.resources.requests["example.com/gpu"] for container in reduced.spec.containers] == ["2", "1"]
    pages = pod("web", spec={"containers": [{"name": "a", "resources": {"requests": {"hugepages-2Mi": "8Mi"}}}]})
    assert least_request(pages, "hugepages-2Mi") == 2 << 20
