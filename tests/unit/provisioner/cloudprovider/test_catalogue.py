"""Catalogues in kwok's format, and the generated one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from podium.objects.errors import FieldError
from podium.provisioner.apis.labels import CAPACITY_TYPE, INSTANCE_TYPE, KWOK_WELL_KNOWN, WELL_KNOWN, ZONE
from podium.provisioner.cloudprovider.catalogue import Catalogue, generated_catalogue, read_catalogue
from podium.provisioner.cloudprovider.instance_types import InstanceType, Overhead
from podium.provisioner.scheduling.requirements import Requirements

RESERVATION = "karpenter.kwok.sh/reservation-id"
GIB = 2**30

ENTRY: dict[str, Any] = {
    "name": "m5.large",
    "architecture": "amd64",
    "operatingSystems": ["linux", "windows"],
    "resources": {"cpu": "2000m", "memory": "8192Mi", "ephemeral-storage": "20Gi", "nvidia.com/gpu": 1},
    "offerings": [
        {
            "Price": 0.25,
            "Available": True,
            "ReservationCapacity": 2,
            "Requirements": [
                {"key": CAPACITY_TYPE, "operator": "In", "values": ["reserved"]},
                {"key": ZONE, "operator": "In", "values": ["b"]},
                {"key": RESERVATION, "operator": "In", "values": ["r-1"]},
            ],
        },
        {
            "Price": 1,
            "Available": True,
            "Requirements": [
                {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]},
                {"key": "failure-domain.beta.kubernetes.io/zone", "operator": "In", "values": ["a"]},
                {"key": RESERVATION, "operator": "DoesNotExist"},
            ],
        },
    ],
}


def entry(**fields: Any) -> dict[str, Any]:
    return {**deepcopy(ENTRY), **fields}


def offering_with(**fields: Any) -> dict[str, Any]:
    return entry(offerings=[{**deepcopy(ENTRY["offerings"][0]), **fields}])


def only(item: dict[str, Any]) -> InstanceType:
    (instance_type,) = read_catalogue([item]).instance_types
    return instance_type


# ---------------------------------------------------------------- the format


def test_an_instance_type_is_read_with_its_defaults() -> None:
    instance_type = only(ENTRY)
    assert instance_type.name == "m5.large"
    assert instance_type.capacity == {
        "cpu": 2000,
        "memory": 8 * GIB,
        "ephemeral-storage": 20 * GIB,
        "nvidia.com/gpu": 1,
        "pods": 110,
    }
    assert instance_type.allocatable["cpu"] == 1900
    assert instance_type.allocatable["memory"] == 8 * GIB - 10 * 2**20
    assert instance_type.allocatable["pods"] == 110


def test_its_own_number_of_pods_is_kept() -> None:
    assert only(entry(resources={"cpu": "1", "pods": "16"})).capacity["pods"] == 16


def test_labels_are_derived() -> None:
    assert str(only(ENTRY).requirements).split(", ") == [
        "karpenter.kwok.sh/instance-cpu In [2]",
        "karpenter.kwok.sh/instance-family In [m5]",
        "karpenter.kwok.sh/instance-memory In [8Gi]",
        "karpenter.kwok.sh/instance-size In [large]",
        "karpenter.sh/capacity-type In [reserved spot]",
        "kubernetes.io/arch In [amd64]",
        "kubernetes.io/os In [linux windows]",
        "node.kubernetes.io/instance-type In [m5.large]",
        "topology.kubernetes.io/zone In [a b]",
    ]


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [
        ("m5.large", "large", "m5"),
        ("c6i.24xlarge", "24xlarge", "c6i"),
        ("t3.xlarge", "xlarge", "t3"),
        ("m5.metal", "metal", "m5"),
        ("u-6tb1.metal", "8", "u"),
        ("m5.metal-24xl", "8", "m5"),
        ("n2-standard-8", "8", "n2"),
        ("c-8x-amd64-linux", "8", "c"),
        ("Standard_D8s_v3", "8", "S"),
    ],
)
def test_size_and_family_are_taken_from_the_name(name: str, size: str, family: str) -> None:
    requirements = only(entry(name=name, resources={"cpu": "8"})).requirements
    assert requirements.get("karpenter.kwok.sh/instance-size").values == {size}
    assert requirements.get("karpenter.kwok.sh/instance-family").values == {family}


def test_offerings_are_read() -> None:
    reserved, spot = only(ENTRY).offerings
    assert (reserved.capacity_type, reserved.zone, reserved.price, reserved.reservation_capacity) == (
        "reserved",
        "b",
        0.25,
        2,
    )
    assert (spot.capacity_type, spot.zone, spot.price, spot.reservation_capacity) == ("spot", "a", 1, 0)
    assert reserved.requirements.get(RESERVATION).values == {"r-1"}
    assert spot.requirements.get(RESERVATION).operator == "DoesNotExist"


def test_every_label_of_an_offering_is_well_known() -> None:
    assert read_catalogue([ENTRY]).well_known == WELL_KNOWN | KWOK_WELL_KNOWN | {RESERVATION}
    assert read_catalogue([]) == Catalogue((), WELL_KNOWN | KWOK_WELL_KNOWN)


@pytest.mark.parametrize(("fields", "is_available"), [({"Available": False}, False), ({"available": None}, True)])
def test_an_offering_is_available_unless_it_says_no(fields: dict[str, Any], is_available: bool) -> None:
    item = offering_with()
    del item["offerings"][0]["Available"]
    item["offerings"][0].update(fields)
    instance_type = only(item)
    assert instance_type.offerings[0].is_available is is_available
    assert instance_type.requirements.get(ZONE).values == {"b"}


def test_overrides_of_an_offering_are_read() -> None:
    instance_type = only(
        offering_with(CapacityOverride={"memory": "16Gi"}, OverheadOverride={"KubeReserved": {"cpu": "1"}})
    )
    assert instance_type.offerings[0].capacity_override == {"memory": 16 * GIB}
    assert instance_type.offerings[0].overhead_override == Overhead({"cpu": 1000}, {}, {})
    plain, override_group = instance_type.groups
    assert (plain.offerings, override_group.offerings) == ((), instance_type.offerings)
    assert override_group.allocatable["cpu"] == 1000
    assert override_group.allocatable["memory"] == 16 * GIB - 10 * 2**20


def test_names_of_fields_may_be_in_any_case_and_unknown_ones_are_ignored() -> None:
    def uppercase(value: Any) -> Any:
        if isinstance(value, dict):
            return {name if "/" in name else name.upper(): uppercase(part) for name, part in value.items()}
        return [uppercase(part) for part in value] if isinstance(value, list) else value

    item = uppercase(entry(colour="blue"))
    item["RESOURCES"] = ENTRY["resources"]
    assert only(item).requirements == only(ENTRY).requirements
    assert [offering.requirements for offering in only(item).offerings] == [
        offering.requirements for offering in only(ENTRY).offerings
    ]


def test_the_names_of_resources_keep_their_case() -> None:
    assert "Example.com/GPU" in only(entry(resources={"cpu": "1", "Example.com/GPU": "2"})).capacity


def test_the_older_form_of_an_offering_is_read() -> None:
    older = [
        {"capacityType": "on-demand", "zone": "us-east-1a", "price": 1.624, "available": True},
        {"capacityType": "spot", "zone": "us-east-1b", "price": 1.7},
    ]
    instance_type = only(entry(offerings=older))
    assert [
        (offering.capacity_type, offering.zone, offering.price, offering.is_available)
        for offering in instance_type.offerings
    ] == [
        ("on-demand", "us-east-1a", 1.624, True),
        ("spot", "us-east-1b", 1.7, True),
    ]
    assert instance_type.offerings[0].requirements == Requirements.of_labels(
        {CAPACITY_TYPE: "on-demand", ZONE: "us-east-1a"}
    )


def test_two_instance_types_may_have_one_name() -> None:
    twice = read_catalogue([entry(operatingSystems=["linux"]), entry(operatingSystems=["windows"])])
    assert [instance_type.name for instance_type in twice.instance_types] == ["m5.large", "m5.large"]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({}, "instanceTypes: is not a list"),
        (["m5"], "instanceTypes[0]: is not an object with named fields"),
        ([ENTRY, {}], "instanceTypes[1].name: is missing"),
        ([entry(name="")], "instanceTypes[0].name: is empty"),
        ([entry(name=None)], "instanceTypes[0].name: is missing"),
        ([entry(name=5)], "instanceTypes[0].name: 5 is not a text"),
        ([entry(architecture=None)], "instanceTypes[0].architecture: is missing"),
        ([entry(operatingSystems="linux")], "instanceTypes[0].operatingSystems: is not a list"),
        ([entry(operatingSystems=[1])], "instanceTypes[0].operatingSystems[0]: 1 is not a text"),
        ([entry(resources=["cpu"])], "instanceTypes[0].resources: is not an object"),
        ([entry(resources={"cpu": True})], "instanceTypes[0].resources[cpu]: True is not a quantity"),
        ([entry(resources={"cpu": "two"})], 'instanceTypes[0].resources[cpu]: "two" has the unknown suffix'),
        ([entry(resources={"cpu": "-1"})], "instanceTypes[0].resources[cpu]: -1 is negative"),
        ([entry(offerings=None)], "instanceTypes[0].offerings: is missing"),
        ([offering_with(Price=-1)], "instanceTypes[0].offerings[0].price: -1 is not a price"),
        ([offering_with(Price=None)], "instanceTypes[0].offerings[0].price: is missing"),
        ([offering_with(Price="0.1")], "instanceTypes[0].offerings[0].price: '0.1' is not a price"),
        ([offering_with(Price=True)], "instanceTypes[0].offerings[0].price: True is not a price"),
        ([offering_with(Price=float("nan"))], "instanceTypes[0].offerings[0].price: nan is not a price"),
        ([offering_with(Price=10**400)], "instanceTypes[0].offerings[0].price: 1000"),
        ([offering_with(Price=float("inf"))], "instanceTypes[0].offerings[0].price: inf is not a price"),
        ([offering_with(Available="yes")], "instanceTypes[0].offerings[0].available: 'yes' is neither true nor false"),
        ([offering_with(ReservationCapacity=-1)], "instanceTypes[0].offerings[0].reservationCapacity: -1 is not"),
        ([offering_with(ReservationCapacity=0.5)], "instanceTypes[0].offerings[0].reservationCapacity: 0.5 is not"),
        ([offering_with(CapacityOverride=5)], "instanceTypes[0].offerings[0].capacityOverride: is not an object"),
        (
            [offering_with(OverheadOverride={"systemReserved": {"cpu": "x"}})],
            "instanceTypes[0].offerings[0].overheadOverride.systemReserved[cpu]: ",
        ),
        ([offering_with(Requirements=None)], "instanceTypes[0].offerings[0].requirements: is missing"),
        ([offering_with(Requirements=None, zone="a")], "instanceTypes[0].offerings[0].capacityType: is missing"),
        (
            [offering_with(Requirements=[{"key": CAPACITY_TYPE, "operator": "In", "values": ["free"]}])],
            f"instanceTypes[0].offerings[0]: has no {CAPACITY_TYPE} of reserved, spot, on-demand",
        ),
        (
            [offering_with(Requirements=[{"key": ZONE}])],
            "instanceTypes[0].offerings[0].requirements[0].operator: is missing",
        ),
        (
            [offering_with(Requirements=[{"key": ZONE, "operator": "Near"}])],
            'instanceTypes[0].offerings[0].requirements[0].operator: "Near" is not one of',
        ),
        (
            [offering_with(Requirements=[{"key": "size", "operator": "Gt", "values": ["big"]}])],
            "instanceTypes[0].offerings[0].requirements[0].values[0]: Gt takes an integer",
        ),
        (
            [offering_with(Requirements=[{"key": ZONE, "operator": "In", "values": [1]}])],
            "instanceTypes[0].offerings[0].requirements[0].values[0]: 1 is not a text",
        ),
    ],
)
def test_what_cannot_be_read_is_named(document: object, text: str) -> None:
    with pytest.raises(FieldError) as error:
        read_catalogue(document)
    assert str(error.value).startswith(text)


# ---------------------------------------------------------------- the generated catalogue


def test_the_generated_catalogue_has_every_combination_in_four_zones() -> None:
    catalogue = generated_catalogue()
    assert (
        len(catalogue.instance_types)
        == len({instance_type.name for instance_type in catalogue.instance_types})
        == 12 * 3 * 2 * 2
    )
    assert {len(instance_type.offerings) for instance_type in catalogue.instance_types} == {8}
    assert [instance_type.name for instance_type in catalogue.instance_types[:5]] == [
        "c-1x-amd64-linux",
        "c-1x-arm64-linux",
        "c-1x-amd64-windows",
        "c-1x-arm64-windows",
        "s-1x-amd64-linux",
    ]
    assert catalogue.well_known == WELL_KNOWN | KWOK_WELL_KNOWN


@pytest.mark.parametrize(
    ("name", "on_demand", "capacity"),
    [
        ("c-1x-amd64-linux", 0.027147483648, {"cpu": 1000, "memory": 2 * GIB, "pods": 16}),
        ("s-2x-arm64-windows", 0.05 + 0.008589934592, {"cpu": 2000, "memory": 8 * GIB, "pods": 32}),
        ("m-256x-amd64-linux", 6.4 + 2.199023255552, {"cpu": 256_000, "memory": 2048 * GIB, "pods": 1024}),
    ],
)
def test_generated_instance_types_cost_by_their_resources(
    name: str, on_demand: float, capacity: dict[str, int]
) -> None:
    (candidate,) = (
        instance_type for instance_type in generated_catalogue().instance_types if instance_type.name == name
    )
    assert candidate.capacity == {**capacity, "ephemeral-storage": 20 * GIB}
    for zone in ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"):
        assert candidate.price_of(zone, "on-demand") == pytest.approx(on_demand)
        assert candidate.price_of(zone, "spot") == pytest.approx(0.7 * on_demand)
    assert candidate.requirements.get(INSTANCE_TYPE).values == {name}


def test_the_cheapest_spot_price_is_the_one_of_karpenters_documents() -> None:
    assert generated_catalogue().instance_types[0].price_of("test-zone-a", "spot") == pytest.approx(0.0190032385536)
