"""What instance types hold, what they cost, and in which order they stand."""

from __future__ import annotations

import pytest

from podium.provisioner.apis.labels import CAPACITY_TYPE, WELL_KNOWN, ZONE
from podium.provisioner.cloudprovider.instance_types import (
    NO_PRICE,
    InstanceType,
    Offering,
    Overhead,
    fits,
    in_price_and_name_order,
    in_price_order,
    unmet_min_values,
)
from podium.provisioner.scheduling.requirements import Requirement, Requirements

GIB = 2**30
ANYTHING = Requirements()
NO_OVERHEAD = Overhead({}, {}, {})


def offering(
    capacity_type: str = "on-demand",
    zone: str = "a",
    price: float = 1.0,
    *,
    room: int = 0,
    is_available: bool = True,
    capacity: dict[str, int] | None = None,
    overhead: Overhead | None = None,
) -> Offering:
    return Offering(
        requirements=Requirements.of_labels({CAPACITY_TYPE: capacity_type, ZONE: zone}),
        price=price,
        is_available=is_available,
        reservation_capacity=room,
        capacity_override=capacity,
        overhead_override=overhead,
    )


def instance_type(
    *offerings: Offering,
    name: str = "m5.large",
    overhead: Overhead = NO_OVERHEAD,
    labels: dict[str, str] | None = None,
    **capacity: int,
) -> InstanceType:
    return InstanceType(
        name=name,
        requirements=Requirements.of_labels(labels or {}),
        offerings=offerings,
        capacity={resource.replace("_", "-"): amount for resource, amount in capacity.items()},
        overhead=overhead,
    )


def only(key: str, *values: str) -> Requirements:
    return Requirements([Requirement.of(key, "In", values)])


# ---------------------------------------------------------------- offerings


@pytest.mark.parametrize(
    ("candidate", "is_launchable"),
    [
        (offering(), True),
        (offering(is_available=False), False),
        (offering("reserved", room=1), True),
        (offering("reserved", room=0), False),
        (offering("reserved", room=1, is_available=False), False),
        (offering("spot", room=0), True),
        (Offering(requirements=ANYTHING, price=1.0), True),
    ],
)
def test_an_offering_is_launchable_if_it_is_healthy_and_its_reservation_has_room(
    candidate: Offering, is_launchable: bool
) -> None:
    assert candidate.is_launchable is is_launchable


def test_zone_and_capacity_type_of_an_offering_are_the_first_by_name() -> None:
    assert (offering("spot", "b").zone, offering("spot", "b").capacity_type) == ("b", "spot")
    two_zones = Offering(requirements=only(ZONE, "b", "a"), price=1.0)
    assert (two_zones.zone, two_zones.capacity_type) == ("a", "")


# ---------------------------------------------------------------- allocatable


def test_allocatable_is_the_capacity_without_all_overhead() -> None:
    overhead = Overhead({"cpu": 100, "memory": 10}, {"cpu": 50}, {"memory": 5, "never-there": 7})
    machine_type = instance_type(offering(), overhead=overhead, cpu=4000, memory=1000, pods=5)
    assert machine_type.allocatable == {"cpu": 3850, "memory": 985, "pods": 5}


def test_huge_pages_are_taken_from_the_memory() -> None:
    machine_type = instance_type(
        overhead=Overhead({"memory": 1}, {}, {}), memory=100, hugepages_2Mi=30, hugepages_1Gi=40
    )
    assert machine_type.allocatable == {"memory": 29, "hugepages-2Mi": 30, "hugepages-1Gi": 40}


def test_huge_pages_never_make_the_memory_negative() -> None:
    assert instance_type(memory=100, hugepages_2Mi=300).allocatable["memory"] == 0
    assert instance_type(overhead=Overhead({"memory": 101}, {}, {}), memory=100).allocatable["memory"] == -1


def test_offerings_with_equal_overrides_are_one_group() -> None:
    plain, hidden = offering(), offering(is_available=False)
    large, twin = offering(capacity={"memory": 200, "gpu": 1}), offering(capacity={"memory": 200, "gpu": 1})
    small = offering(overhead=Overhead({"memory": 20}, {"memory": 20}, {}))
    machine_type = instance_type(
        large, plain, small, hidden, twin, overhead=Overhead({"cpu": 1, "memory": 10}, {}, {}), cpu=10, memory=100
    )
    assert [(group.allocatable, group.offerings) for group in machine_type.groups] == [
        ({"cpu": 9, "memory": 90}, (plain,)),
        ({"cpu": 9, "memory": 190, "gpu": 1}, (large, twin)),
        ({"cpu": 9, "memory": 60}, (small,)),
    ]


def test_the_group_without_overrides_comes_first_even_if_it_is_empty() -> None:
    large_offering = offering(capacity={"cpu": 20})
    groups = instance_type(large_offering, cpu=10).groups
    assert [(group.allocatable["cpu"], len(group.offerings)) for group in groups] == [(10, 0), (20, 1)]


@pytest.mark.parametrize(
    ("requests", "total", "do_fit"),
    [
        ({"cpu": 10}, {"cpu": 10}, True),
        ({"cpu": 11}, {"cpu": 10}, False),
        ({"gpu": 0}, {"cpu": 10}, True),
        ({"gpu": 1}, {"cpu": 10}, False),
        ({}, {}, True),
        ({}, {"cpu": 10, "memory": -1}, False),
    ],
)
def test_requests_fit_if_each_amount_does_and_no_total_is_negative(
    requests: dict[str, int], total: dict[str, int], do_fit: bool
) -> None:
    assert fits(requests, total) is do_fit


# ---------------------------------------------------------------- prices


def test_the_cheapest_price_is_that_of_a_launchable_compatible_offering() -> None:
    machine_type = instance_type(
        offering("on-demand", "a", 5.0),
        offering("spot", "a", 3.0),
        offering("spot", "b", 2.0),
        offering("spot", "c", 1.0, is_available=False),
        offering("reserved", "a", 0.1),
    )
    assert machine_type.cheapest_price(ANYTHING, WELL_KNOWN) == 2.0
    assert machine_type.cheapest_price(only(ZONE, "a", "c"), WELL_KNOWN) == 3.0
    assert machine_type.cheapest_price(only(CAPACITY_TYPE, "on-demand"), WELL_KNOWN) == 5.0
    assert machine_type.cheapest_price(only(ZONE, "d"), WELL_KNOWN) == NO_PRICE
    assert machine_type.cheapest_price(ANYTHING, frozenset()) == NO_PRICE


def test_the_worst_launch_price_is_the_most_expensive_zone_of_the_capacity_type_that_is_launched() -> None:
    reserved = offering("reserved", "a", 0.5, room=1)
    machine_type = instance_type(
        offering("on-demand", "a", 9.0), offering("spot", "a", 3.0), offering("spot", "b", 2.0), reserved
    )
    assert machine_type.worst_launch_price(ANYTHING, WELL_KNOWN) == 0.5
    assert machine_type.worst_launch_price(only(CAPACITY_TYPE, "spot", "on-demand"), WELL_KNOWN) == 3.0
    assert machine_type.worst_launch_price(only(ZONE, "b"), WELL_KNOWN) == 2.0
    assert machine_type.worst_launch_price(only(CAPACITY_TYPE, "on-demand"), WELL_KNOWN) == 9.0
    assert machine_type.worst_launch_price(only(ZONE, "c"), WELL_KNOWN) == NO_PRICE


def test_a_full_reservation_does_not_count_in_the_worst_launch_price() -> None:
    machine_type = instance_type(offering("reserved", "a", 0.5), offering("spot", "a", 3.0), offering("spot", "b", 4.0))
    assert machine_type.worst_launch_price(ANYTHING, WELL_KNOWN) == 4.0


def test_a_running_node_costs_what_the_first_offering_of_its_labels_says() -> None:
    machine_type = instance_type(offering("spot", "a", 3.0, is_available=False), offering("spot", "a", 2.0))
    assert machine_type.price_of("a", "spot") == 3.0


@pytest.mark.parametrize(("zone", "capacity_type"), [("b", "spot"), ("a", "on-demand"), ("", "")])
def test_a_running_node_that_no_offering_knows_costs_nothing(zone: str, capacity_type: str) -> None:
    assert instance_type(offering("spot", "a", 3.0)).price_of(zone, capacity_type) == 0


def test_equal_prices_stay_in_order_before_a_cut_and_stand_by_name_in_a_plan() -> None:
    types = [
        instance_type(name="unpriced"),
        instance_type(offering(price=2.0), name="b"),
        instance_type(offering(price=2.0), name="a"),
        instance_type(offering(price=1.0), offering(zone="b", price=7.0), name="c"),
    ]
    assert [instance_type.name for instance_type in in_price_order(types, ANYTHING, WELL_KNOWN)] == [
        "c",
        "b",
        "a",
        "unpriced",
    ]
    assert [instance_type.name for instance_type in in_price_and_name_order(types, ANYTHING, WELL_KNOWN)] == [
        "c",
        "a",
        "b",
        "unpriced",
    ]
    in_b = only(ZONE, "b")
    assert [instance_type.name for instance_type in in_price_and_name_order(types, in_b, WELL_KNOWN)] == [
        "c",
        "a",
        "b",
        "unpriced",
    ]


# ---------------------------------------------------------------- minValues

TYPES = [
    instance_type(name="m5.large", labels={"family": "m5", "size": "large"}),
    instance_type(name="m5.xlarge", labels={"family": "m5", "size": "xlarge"}),
    instance_type(name="c5.large", labels={"family": "c5", "size": "large"}),
]


def test_min_values_count_different_values() -> None:
    requirements = Requirements(
        [Requirement.of("size", "Exists", min_values=3), Requirement.of("family", "Exists", min_values=3)]
    )
    assert list(unmet_min_values(TYPES, requirements).items()) == [("family", 2), ("size", 2)]
    assert unmet_min_values(TYPES, Requirements([Requirement.of("family", "Exists", min_values=2)])) == {}


def test_min_values_count_only_values_that_the_requirement_allows() -> None:
    requirements = Requirements([Requirement.of("family", "NotIn", ("c5",), min_values=2)])
    assert unmet_min_values(TYPES, requirements) == {"family": 1}


def test_min_values_of_a_label_that_no_instance_type_has_are_unmet() -> None:
    assert unmet_min_values(TYPES, Requirements([Requirement.of("rack", "Exists", min_values=1)])) == {"rack": 0}


def test_without_min_values_or_without_instance_types_nothing_is_unmet() -> None:
    assert unmet_min_values(TYPES, Requirements([Requirement.of("rack", "Exists")])) == {}
    assert unmet_min_values([], Requirements([Requirement.of("rack", "Exists", min_values=1)])) == {}
