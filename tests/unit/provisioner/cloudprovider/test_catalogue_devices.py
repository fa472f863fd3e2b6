"""The devices that a catalogue says an instance type has."""

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.cloudprovider.catalogue import read_catalogue
from podium.provisioner.cloudprovider.imports import import_catalogue
from tests.unit.provisioner.clusters import instance_type

_MEMORY = [{"counterSet": "chip", "counters": {"memory": {"value": "40Gi"}}}]


def test_devices_that_are_alike_may_be_given_in_short() -> None:
    devices = {"count": 2, "attributes": {"model": "a100", "cores": 8, "nvlink": True}, "capacity": {"memory": "80Gi"}}
    (big,) = read_catalogue(
        [{**instance_type("big", 8, "16Gi"), "devices": {"gpu.example.com": devices}}]
    ).instance_types
    first, second = big.devices["gpu.example.com"]
    assert (first.name, second.name) == ("device-0", "device-1")
    assert first.attributes == second.attributes
    assert first.attributes is not None
    assert (first.attributes["model"].string, first.attributes["cores"].int_value) == ("a100", 8)
    assert first.attributes["nvlink"].bool_value is True
    assert first.capacity is not None
    assert first.capacity["memory"].value == "80Gi"


def test_devices_may_be_given_as_slices_have_them() -> None:
    devices = {
        "devices": [{"name": "half-0", "consumesCounters": _MEMORY}],
        "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "80Gi"}}}],
    }
    (big,) = read_catalogue(
        [{**instance_type("big", 8, "16Gi"), "devices": {"gpu.example.com": devices}}]
    ).instance_types
    assert [device.name for device in big.devices["gpu.example.com"]] == ["half-0"]
    assert [counters.name for counters in big.counters["gpu.example.com"]] == ["chip"]


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ([{"name": "a"}, {"name": "a"}], '[1].name: "a" is there twice'),
        ([{}], "[0].name: is missing"),
        ([{"name": "a", "nodeName": "n1"}], "[0]: names nodes"),
        ([{"name": "a", "attributes": {"model": {}}}], "[0].attributes[model]: has not exactly one of"),
        ([{"name": "a", "capacity": {"memory": {"value": "lots"}}}], "[0].capacity[memory].value: "),
        ([{"name": "a", "consumesCounters": _MEMORY}], "[0].consumesCounters[0].counters[memory]: the shared counters"),
        ({"count": 2, "models": {}}, ".models: is not one of"),
        ([{"name": "GPU 0"}], "[0].name: is not the name of a device"),
        ([{"name": "a", "basic": {"attributes": {}}}], "[0].basic: is of resource.k8s.io/v1beta1"),
        (
            [{"name": "a", "attributes": {"model": {"string": "a100", "int": 1}}}],
            "[0].attributes[model]: has not exactly one of",
        ),
        ([{"name": "a", "attributes": {"cuda": {"version": "12"}}}], "[0].attributes[cuda].version: '12' is not a sem"),
        ({"count": 1, "attributes": {"cores": 2**64}}, "[0].attributes[cores].int: does not fit into 64 bits"),
        ({"count": 1, "capacity": {"memory": "-1Gi"}}, "[0].capacity[memory].value: -1Gi is less than 0"),
        (
            {"devices": [], "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "-1"}}}]},
            ".sharedCounters[0].counters[memory].value: -1 is less than 0",
        ),
        ({"devices": [], "sharedCounters": [{"counters": {}}]}, ".sharedCounters[0].name: is missing"),
        (
            {"devices": [], "sharedCounters": [{"name": "chip", "counters": {}}] * 2},
            '.sharedCounters[1].name: "chip" is there twice',
        ),
        (
            {
                "devices": [{"name": "a", "consumesCounters": _MEMORY * 2}],
                "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "80Gi"}}}],
            },
            '.devices[0].consumesCounters[1].counterSet: "chip" is there twice',
        ),
        ({"count": 1, "attributes": {"": 1}}, "[0].attributes: has a name that is empty"),
        ({"count": 1, "taints": [{"key": "x", "effect": "Never"}]}, "[0].taints[0].effect: 'Never' is not one of"),
        ({"attributes": {"model": "a100"}}, ".count: None is not a number of devices"),
        ({"count": 129}, ".count: 129 is not a number of devices"),
        ({"count": -1}, ".count: -1 is not a number of devices"),
        ({"count": 1, "attributes": []}, ".attributes: is not an object"),
        ({"devices": [], "count": 2}, ".count: is not one of devices, sharedCounters"),
        (
            {
                "devices": [{"name": "a", "consumesCounters": _MEMORY}],
                "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "20Gi"}}}],
            },
            ".devices[0].consumesCounters[0].counters[memory]: 40Gi is more than the shared counter has",
        ),
        (
            {"devices": [], "sharedCounters": [{"name": "chip", "counters": {"memory": {"value": "20Gi"}}}] * 2},
            '.sharedCounters[1].name: "chip" is there twice',
        ),
    ],
)
def test_devices_that_contradict_each_other_are_refused_by_field(devices, text) -> None:
    with pytest.raises(FieldError) as error:
        read_catalogue([{**instance_type("big", 8, "16Gi"), "devices": {"d": devices}}], "")
    assert str(error.value).startswith(f"[0].devices[d]{text}")


@pytest.mark.parametrize("driver", ["", "GPU.example.com", "gpu/a", "a b", "x" * 300])
def test_a_driver_has_a_name_as_in_a_slice(driver: str) -> None:
    with pytest.raises(FieldError, match="is not the name of a driver"):
        read_catalogue([{**instance_type("big", 8, "16Gi"), "devices": {driver: {"count": 1}}}], "")


def test_no_devices_are_none() -> None:
    (big,) = read_catalogue([{**instance_type("big", 8, "16Gi"), "devices": {"d": {"count": 0}}}]).instance_types
    assert big.devices["d"] == ()


def test_two_entries_of_one_type_must_have_the_same_devices() -> None:
    entries = [{**instance_type("big", 8, "16Gi"), "devices": {"d": {"count": count}}} for count in (2, 4)]
    with pytest.raises(FieldError) as error:
        import_catalogue([("a.json: ", entries[:1]), ("b.json: ", entries[1:])])
    assert str(error.value) == "big.devices: are others than in another entry of this type"
    with pytest.raises(FieldError):
        import_catalogue([("a.json: ", entries)])
    assert import_catalogue([("a.json: ", entries[:1]), ("b.json: ", entries[:1])]).instance_types
