import msgspec
import pytest

from podium.devices.extended_resources import requests_for
from podium.objects.core import PodSpec

GPU, NIC = "example.com/gpu", "example.com/nic"
CLASSES = {GPU: "gpu", NIC: "nic"}


def container(name, **fields):
    requests = fields.pop("requests", {})
    return {"name": name, "resources": {"requests": requests}, **fields}


def answer(*containers, init=(), classes=CLASSES):
    """The requests as (name, class, count), and the mappings as (container, request)."""
    spec = msgspec.convert({"containers": list(containers), "initContainers": list(init)}, PodSpec)
    requests, mappings = requests_for(spec, classes)
    return (
        [(entry.name, entry.exactly.device_class_name, entry.exactly.count) for entry in requests],
        [(entry.container_name, entry.request_name) for entry in mappings],
    )


def test_request_is_named_by_container_and_place_among_its_resources():
    requests = {"cpu": "1", NIC: "1", GPU: "2"}
    assert answer(container("a", requests={"cpu": "1"}), container("b", requests=requests)) == (
        [("container-1-request-1", "gpu", 2), ("container-1-request-2", "nic", 1)],
        [("b", "container-1-request-1"), ("b", "container-1-request-2")],
    )


def test_only_resources_that_devices_provide_are_requested():
    assert answer(container("a", requests={GPU: "1"}), classes={NIC: "nic"}) == ([], [])


def test_sidecars_count_as_containers():
    sidecar = container("s", requests={GPU: "1"}, restartPolicy="Always")
    requests, _ = answer(container("a", requests={GPU: "2"}), init=[sidecar])
    assert requests == [("container-0-request-0", "gpu", 1), ("container-1-request-0", "gpu", 2)]


def test_init_container_uses_the_devices_of_later_containers_first():
    result = answer(container("a", requests={GPU: "2"}), init=[container("i", requests={GPU: "3"})])
    assert result == (
        [("container-0-request-0", "gpu", 1), ("container-1-request-0", "gpu", 2)],
        [("a", "container-1-request-0"), ("i", "container-1-request-0"), ("i", "container-0-request-0")],
    )
    requests, mappings = answer(container("a", requests={GPU: "2"}), init=[container("i", requests={GPU: "2"})])
    assert (requests, mappings[1:]) == ([("container-1-request-0", "gpu", 2)], [("i", "container-1-request-0")])


def test_init_containers_share_the_largest_request():
    result = answer(container("a"), init=[container(f"i{count}", requests={GPU: str(count)}) for count in (1, 3, 2)])
    assert result == (
        [("container-1-request-0", "gpu", 3)],
        [(name, "container-1-request-0") for name in ("i1", "i3", "i2")],
    )


def test_sidecar_before_an_init_container_is_not_used_by_it():
    init = [container("s", requests={GPU: "1"}, restartPolicy="Always"), container("i", requests={GPU: "1"})]
    requests, _ = answer(container("a"), init=init)
    assert [name for name, _, _ in requests] == ["container-0-request-0", "container-1-request-0"]


@pytest.mark.parametrize("raw", ["0", "1.5", "2.0", "500m"])
def test_amount_that_is_not_written_as_an_integer_is_not_requested(raw):
    assert answer(container("a", requests={GPU: raw})) == ([], [])


def test_requests_are_sorted_as_texts():
    containers = [container(f"c{index}", requests={GPU: "1"}) for index in range(11)]
    names = [name for name, _, _ in answer(*containers)[0]]
    assert names[:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]
