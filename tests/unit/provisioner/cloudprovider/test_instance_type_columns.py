"""Instance types as columns answer as each instance type would."""

from __future__ import annotations

import itertools

import pytest

from podium.provisioner.cloudprovider.instance_type_columns import InstanceTypeColumns
from podium.provisioner.cloudprovider.instance_types import fits, in_price_and_name_order, in_price_order
from podium.provisioner.scheduling.requirements import Requirement, Requirements
from tests.unit.provisioner.clusters import CAPACITY_TYPE, RESERVATION, ZONE, catalogue, instance_type, requirement

ARCH = "kubernetes.io/arch"
CORES = "karpenter.kwok.sh/instance-cpu"
SMALLER = {**instance_type("overridden", 8, "8Gi")}
SMALLER["offerings"][0]["capacityOverride"] = {"cpu": "64"}
SMALLER["offerings"][1]["available"] = False
CATALOGUE = catalogue(
    instance_type("b", 2, "2Gi", zones=["zone-1"]),
    instance_type("a", 2, "2Gi", zones=["zone-1", "zone-2"]),
    instance_type("arm", 16, "64Gi", arch="arm64"),
    instance_type("held", 4, "4Gi", reserved={"r1": 1, "r2": 0}),
    SMALLER,
)
TYPES = CATALOGUE.instance_types
WELL_KNOWN = CATALOGUE.well_known
WANTED = [
    [],
    [requirement(ARCH, "In", "arm64")],
    [requirement(ARCH, "NotIn", "arm64")],
    [requirement(CORES, "Gt", "3")],
    [requirement(CORES, "Gt", "3"), requirement(CORES, "Lt", "9"), requirement(ZONE, "In", "zone-2")],
    [requirement(ZONE, "In", "zone-3"), requirement(CAPACITY_TYPE, "In", "spot")],
    [requirement(CAPACITY_TYPE, "In", "reserved"), requirement(RESERVATION, "In", "r1")],
    [requirement("team", "In", "x"), requirement("node.kubernetes.io/instance-type", "In", "a", "held")],
    [requirement(ZONE, "DoesNotExist")],
    [requirement("kubernetes.io/hostname", "In", "host")],
]
REQUIREMENTS = [
    Requirements(
        Requirement.of(requirement["key"], requirement["operator"], requirement["values"]) for requirement in documents
    )
    for documents in WANTED
]


@pytest.fixture(scope="module")
def columns() -> InstanceTypeColumns:
    return InstanceTypeColumns(TYPES, WELL_KNOWN)


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=str)
def test_requirements_are_met_by_the_types_that_meet_them(
    columns: InstanceTypeColumns, requirements: Requirements
) -> None:
    for _ in range(2):  # the second time from memory
        meeting = columns.types_in(columns.meeting(requirements))
        assert meeting == tuple(
            instance_type for instance_type in TYPES if instance_type.requirements.intersects(requirements)
        )


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=str)
@pytest.mark.parametrize("cpu", [100, 1900, 7900, 60000, 10**30])
def test_room_counts_where_there_is_an_offering(
    columns: InstanceTypeColumns, requirements: Requirements, cpu: int
) -> None:
    requests = {"cpu": cpu, "pods": 1, "example.com/none": 0}
    rows = columns.with_room(requests) & columns.offered_rows(requirements)
    fitting_types = tuple(
        instance_type
        for instance_type in TYPES
        if any(
            fits(requests, group.allocatable)
            for group in instance_type.groups
            if any(requirements.is_compatible(offering.requirements, WELL_KNOWN) for offering in group.offerings)
        )
    )
    assert columns.types_in(columns.types_of_rows(rows)) == fitting_types


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=str)
def test_prices_are_those_of_each_type(columns: InstanceTypeColumns, requirements: Requirements) -> None:
    for order in itertools.islice(itertools.permutations(TYPES), 0, 120, 17):
        assert list(columns.in_price_order(order, requirements)) == in_price_order(order, requirements, WELL_KNOWN)
        by_name = columns.in_price_order(order, requirements, then_by_name=True)
        assert list(by_name) == in_price_and_name_order(order, requirements, WELL_KNOWN)
    for machine_type in TYPES:
        assert columns.cheapest_price(machine_type, requirements) == machine_type.cheapest_price(
            requirements, WELL_KNOWN
        )


def test_capacity_types_are_those_that_can_be_launched(columns: InstanceTypeColumns) -> None:
    everywhere = Requirements()
    assert columns.launchable_capacity_types(TYPES[3:4], everywhere) == {
        "spot",
        "on-demand",
        "reserved",
    }
    assert columns.launchable_capacity_types(TYPES[:1], everywhere) == {"spot", "on-demand"}


def test_types_are_required_by_name(columns: InstanceTypeColumns) -> None:
    for _ in range(2):
        assert columns.name_requirement(TYPES[:2]).values == {"a", "b"}
        assert columns.name_requirement(TYPES[2:3]).values == {"arm"}


def test_limits_are_held_against_capacity(columns: InstanceTypeColumns) -> None:
    within = columns.within({"cpu": 4000, "nodes": 1})
    assert [instance_type.name for instance_type in columns.types_in(within)] == ["b", "a", "held"]
    assert columns.within({"cpu": -1}) == 0
    assert columns.largest_capacity(within, ["cpu", "nodes"]) == {"cpu": 4000}


def test_an_empty_catalogue_has_no_types() -> None:
    nothing = InstanceTypeColumns((), WELL_KNOWN)
    assert nothing.with_room({"cpu": 1}) == nothing.offered_rows(Requirements()) == nothing.meeting(Requirements()) == 0
    assert nothing.in_price_order((), Requirements()) == ()
