"""NodeIndex in reservations, and pods that wait for them."""

from podium.provisioner.cloudprovider.reservations import Reservations, reservation_of
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    RESERVATION,
    catalogue,
    instance_type,
    node_pool,
    plan,
    pod,
    requirement,
    spread,
)

WEB = {"app": "web"}
APART = [spread(HOSTNAME)]


def test_a_node_holds_its_places_until_it_lets_them_go() -> None:
    types = catalogue(instance_type("a", 2, "2Gi", reserved={"r1": 1})).instance_types
    (offering,) = (offering for offering in types[0].offerings if offering.capacity_type == "reserved")
    assert reservation_of(offering) == "r1"
    places = Reservations(types)
    assert places.can_hold("one", offering)
    places.hold("one", [offering])
    assert places.can_hold("one", offering)
    assert not places.can_hold("two", offering)
    places.hold("one", [])
    assert places.can_hold("two", offering)


def test_the_smallest_number_of_places_counts() -> None:
    types = catalogue(
        instance_type("a", 2, "2Gi", reserved={"r1": 3}), instance_type("b", 2, "2Gi", reserved={"r1": 0})
    ).instance_types
    (offering,) = (offering for offering in types[0].offerings if offering.capacity_type == "reserved")
    assert not Reservations(types).can_hold("one", offering)


def test_a_claim_that_holds_places_is_pinned_to_them() -> None:
    (claim,) = plan(pod("a"), types=[instance_type("a", 2, "2Gi", reserved={"r1": 1})])["claims"]
    labels = {requirement["key"]: requirement.get("values") for requirement in claim["requirements"]}
    assert (labels[CAPACITY_TYPE], labels[RESERVATION], claim["price"]) == (["reserved"], ["r1"], 0.001)


def test_a_pod_waits_for_a_place_that_another_claim_holds() -> None:
    pods = [pod(f"web-{index}", labels=WEB, topologySpreadConstraints=APART) for index in range(2)]
    answer = plan(*pods, types=[instance_type("a", 2, "2Gi", reserved={"r1": 1})])
    assert len(answer["claims"]) == 1
    assert list(answer["errors"].values()) == [
        "one or more instance types with compatible reserved offerings are available, but could not be reserved"
    ]


def test_a_full_reservation_is_no_reason_to_wait_unless_there_is_nothing_else() -> None:
    full = [instance_type("a", 2, "2Gi", reserved={"r1": 0})]
    (claim,) = plan(pod("a"), types=full)["claims"]
    assert {requirement["key"]: requirement.get("values") for requirement in claim["requirements"]}[CAPACITY_TYPE] == [
        "on-demand",
        "spot",
    ]
    only = node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "reserved")])
    assert plan(pod("a"), only, types=full)["errors"] == {
        "default/a": "all compatible reserved offerings are full and no on-demand or spot fallback is available"
    }


def test_reservations_can_be_switched_off() -> None:
    (claim,) = plan(pod("a"), types=[instance_type("a", 2, "2Gi", reserved={"r1": 1})], uses_reservations=False)[
        "claims"
    ]
    assert RESERVATION not in {requirement["key"] for requirement in claim["requirements"]}
