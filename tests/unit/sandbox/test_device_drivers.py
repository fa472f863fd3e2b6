"""The stand-in drivers: what they publish, and which devices can be asked for."""

import pytest

from podium.sandbox.device_drivers import DeviceDrivers, DeviceKind
from podium.sandbox.fill import varied_nodes
from podium.sandbox.store import Store


@pytest.fixture
def store():
    return Store()


def names(store):
    return [resource_slice["metadata"]["name"] for resource_slice in store.list("resourceslices")]


def test_every_node_has_a_slice_while_it_exists(store):
    for node in varied_nodes(2):
        store.create(node)
    drivers = DeviceDrivers(store, [DeviceKind("gpu", 2), DeviceKind("nic", 1)])
    drivers.work()
    assert len(names(store)) == 4
    store.create(varied_nodes(3)[2])
    store.delete("nodes", "node-00000")
    drivers.work()
    assert names(store) == [
        f"{node}-{kind}.example.com" for node in ("node-00001", "node-00002") for kind in ("gpu", "nic")
    ]


def test_devices_differ_in_what_selectors_and_constraints_look_at(store):
    for node in varied_nodes(3):
        store.create(node)
    DeviceDrivers(store, [DeviceKind("gpu", 4)]).work()
    slices = store.list("resourceslices")
    spec = slices[0]["spec"]
    assert (spec["driver"], spec["nodeName"]) == ("gpu.example.com", "node-00000")
    assert [device["name"] for device in spec["devices"]] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    roots = [device["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for device in spec["devices"]]
    assert roots == ["pci0000:00", "pci0000:00", "pci0000:01", "pci0000:01"]
    models = [resource_slice["spec"]["devices"][0]["attributes"]["model"]["string"] for resource_slice in slices]
    assert models == ["LATEST-GPU-MODEL", "LATEST-GPU-MODEL", "EARLIER-GPU-MODEL"]
    uuids = {
        device["attributes"]["uuid"]["string"]
        for resource_slice in slices
        for device in resource_slice["spec"]["devices"]
    }
    assert len(uuids) == 12
    [device_class] = store.list("deviceclasses")
    assert (device_class["metadata"]["name"], device_class["spec"]["extendedResourceName"]) == (
        "gpu.example.com",
        "dra.example.com/gpu",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gpu", "'gpu' is not of the form NAME=COUNT, such as gpu=8"),
        ("=8", "'' cannot be part of a driver's name"),
        ("GPU=8", "'GPU' cannot be part of a driver's name"),
        ("a.b=8", "'a.b' cannot be part of a driver's name"),
        ("gpu=", "gpu: the count has to be from 1 to 128, not ''"),
        ("gpu=0", "gpu: the count has to be from 1 to 128, not '0'"),
        ("gpu=129", "gpu: the count has to be from 1 to 128, not '129'"),
        ("gpu=-1", "gpu: the count has to be from 1 to 128, not '-1'"),
        ("gpu=²", "gpu: the count has to be from 1 to 128, not '²'"),
        ("gpu=" + "9" * 5000, "gpu: the count has to be from 1 to 128"),
    ],
)
def test_a_bad_amount_of_devices_is_refused_by_name(text, reason):
    with pytest.raises(ValueError, match=f"^{reason}"):
        DeviceKind.parse(text)
