import pytest

from podium.devices import AllocationError, Refusal
from tests.unit.devices.cluster import (
    DRIVER,
    NEW,
    OLD,
    a_slice,
    allocate,
    allocation,
    claim,
    device,
    devices_of,
    either,
    request,
)

SET = [{"name": "set", "counters": {"memory": {"value": "8"}}}]
NEVER = {"matchAttribute": "x.org/none"}


def part(name, amount, **fields):
    consumes = [{"counterSet": "set", "counters": {"memory": {"value": amount}}}]
    return device(name, consumesCounters=consumes, **fields)


def partitioned_slice(*devices):
    return [a_slice("c", slices=2, sharedCounters=SET), a_slice("d", *devices, slices=2)]


def shared_device(name="g0", **capacity):
    return device(name, allowMultipleAllocations=True, capacity=capacity)


def asking(name="r", **capacities):
    return request(name, capacity={"requests": capacities})


def test_shared_device_is_given_out_until_its_capacity_is_used_up():
    slices = a_slice("s", shared_device(memory="8Gi"), shared_device("g1", memory="4Gi"))
    three_requests = claim(asking("a", memory="5Gi"), asking("b", memory="3Gi"), asking("c", memory="2Gi"))
    (result,) = allocate(three_requests, slices)
    assert [(device_result.device, device_result.consumed_capacity) for device_result in result.devices.results] == [
        ("g0", {"memory": "5Gi"}),
        ("g0", {"memory": "3Gi"}),
        ("g1", {"memory": "2Gi"}),
    ]
    assert len({device_result.share_id for device_result in result.devices.results}) == 3


def test_capacity_that_claims_hold_counts():
    share = allocation({"device": "g0", "shareID": "a", "consumedCapacity": {"memory": "6Gi"}})
    slices = a_slice("s", shared_device(memory="8Gi"))
    assert allocate(claim(asking(memory="3Gi")), slices, claim_in_use=share) is Refusal.NOT_FOUND
    assert devices_of(allocate(claim(asking(memory="2Gi")), slices, claim_in_use=share)) == [["g0"]]


def test_capacity_selects_among_devices_that_are_not_shared():
    slices = a_slice("s", device("g0", capacity={"memory": "4Gi"}), device("g1", capacity={"memory": "8Gi"}))
    (result,) = allocate(claim(asking(memory="6Gi")), slices)
    assert [
        (device_result.device, device_result.share_id, device_result.consumed_capacity)
        for device_result in result.devices.results
    ] == [("g1", None, {})]


def test_capacity_is_given_back():
    slices = a_slice("s", shared_device(memory="8Gi"))
    small = either("a", asking("big", memory="6Gi"), asking("small", memory="2Gi"))
    (result,) = allocate(claim(small, asking("b", memory="5Gi")), slices)
    assert [device_result.request for device_result in result.devices.results] == ["a/small", "b"]


def test_counters_are_given_back():
    slices = partitioned_slice(part("g0", "6"), part("g1", "4"), part("g2", "4"))
    assert devices_of(allocate(claim(request(count=2)), *slices)) == [["g1", "g2"]]


@pytest.mark.parametrize(("release", "is_charged"), [(OLD, True), (NEW, False)], ids=["old", "new"])
def test_counters_of_a_device_that_is_refused_are_given_back_in_newer_minors(release, is_charged):
    tainted = part("g0", "6", taints=[{"key": "k", "effect": "NoSchedule"}])
    solution = allocate(claim(), *partitioned_slice(tainted, part("g1", "4")), release=release)
    assert devices_of(solution) == (Refusal.NOT_FOUND if is_charged else [["g1"]])
    assert devices_of(allocate(claim(), *partitioned_slice(tainted, part("g1", "2")), release=release)) == [["g1"]]
    same = claim(constraints=[{"matchAttribute": f"{DRIVER}/x"}])
    slices = partitioned_slice(part("g0", "6"), part("g1", "4", attributes={"x": 1}))
    assert devices_of(allocate(same, *slices, release=release)) == (Refusal.NOT_FOUND if is_charged else [["g1"]])


def test_counters_of_a_shared_device_are_charged_once():
    slices = partitioned_slice(part("g0", "6", allowMultipleAllocations=True), part("g1", "4"))
    for release in (OLD, NEW):
        two_requests = claim(request(count=1), request("q"))
        assert devices_of(allocate(two_requests, *slices, release=release)) == [["g0", "g0"]]


@pytest.mark.parametrize(("release", "is_kept"), [(OLD, True), (NEW, False)], ids=["old", "new"])
def test_counters_of_a_shared_device_are_given_back_in_newer_minors(release, is_kept):
    slices = partitioned_slice(
        part("g0", "6", allowMultipleAllocations=True), part("g1", "4"), part("g2", "4", attributes={"x": 1})
    )
    picky = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]
    solution = allocate(claim(request(), request("q", selectors=picky)), *slices, release=release)
    assert devices_of(solution) == (Refusal.NOT_FOUND if is_kept else [["g1", "g2"]])


@pytest.mark.parametrize(("release", "is_charged"), [(OLD, True), (NEW, False)], ids=["old", "new"])
def test_an_allocated_share_without_amounts_pays_for_the_counters_in_newer_minors(release, is_charged):
    slices = partitioned_slice(part("g0", "8", allowMultipleAllocations=True))
    share = allocation({"device": "g0", "shareID": "a"})
    solution = allocate(claim(), *slices, claim_in_use=share, release=release)
    assert devices_of(solution) == (Refusal.NOT_FOUND if is_charged else [["g0"]])


_SHARED, _NOT_SHARED = ([{"cel": {"expression": f"{sign}device.allowMultipleAllocations"}}] for sign in ("", "!"))


def test_an_earlier_share_without_amounts_still_pays_after_a_later_one_is_given_back():
    shared = part("g0", "8", allowMultipleAllocations=True, attributes={"m": "x"})
    slices = partitioned_slice(shared, device("g1", attributes={"m": "y"}))
    alternatives = (request(name, selectors=_SHARED) for name in ("one", "other"))
    requests = request("a", selectors=_SHARED), either("b", *alternatives), request("c", selectors=_NOT_SHARED)
    alike = {"requests": ["b/one", "c"], "matchAttribute": f"{DRIVER}/m"}
    assert devices_of(allocate(claim(*requests, constraints=[alike]), *slices)) == [["g0", "g0", "g1"]]


def test_a_share_without_amounts_that_was_given_back_pays_for_no_other():
    slices = partitioned_slice(part("g0", "8", allowMultipleAllocations=True), part("g1", "8"))
    alternatives = (request(name, selectors=_SHARED) for name in ("one", "other"))
    two_requests = claim(either("a", *alternatives), request("b", selectors=_NOT_SHARED))
    assert allocate(two_requests, *slices) is Refusal.NOT_FOUND


def test_pools_of_two_drivers_with_the_same_name_have_counters_of_their_own():
    small = [{"name": "set", "counters": {"memory": {"value": "1"}}}]
    slices = [
        a_slice("a", slices=2, driver="a", sharedCounters=small),
        a_slice("b", part("g0", "1"), slices=2, driver="a"),
        *partitioned_slice(part("g1", "4")),
    ]
    for release in (OLD, NEW):
        assert devices_of(allocate(claim(request(count=2)), *slices, release=release)) == [["g0", "g1"]]


@pytest.mark.parametrize(("release", "devices"), [(OLD, [["g1"]]), (NEW, Refusal.NOT_FOUND)], ids=["old", "new"])
def test_all_devices_include_those_without_capacity_left_in_newer_minors(release, devices):
    share = allocation({"device": "g0", "shareID": "a", "consumedCapacity": {"memory": "10"}})
    slices = a_slice("s", shared_device(memory="10"), shared_device("g1", memory="10"), shared_device("g2", memory="4"))
    every = claim(request(allocationMode="All", capacity={"requests": {"memory": "5"}}))
    assert devices_of(allocate(every, slices, claim_in_use=share, release=release)) == devices


_NEGATIVE = 'capacity "memory": capacity value is negative$'


def test_a_negative_amount_ends_the_attempt_in_newer_minors():
    slices = a_slice("s", shared_device(memory="10"))
    assert devices_of(allocate(claim(asking(memory="-1")), slices, release=OLD)) == [["g0"]]
    where = f"^claim ns/c, request r: checking capacity for device {DRIVER}/p/g0"
    with pytest.raises(AllocationError, match=f"{where}: {_NEGATIVE}"):
        allocate(claim(asking(memory="-1")), slices)


def test_a_negative_amount_of_a_request_for_all_devices_ends_the_attempt():
    every = request(allocationMode="All", capacity={"requests": {"memory": "-1"}})
    where = "^claim ns/c, request r: checking capacity for device g0"
    with pytest.raises(AllocationError, match=f"{where}: {_NEGATIVE}"):
        allocate(claim(every), a_slice("s", shared_device(memory="10")))


def test_a_device_with_a_negative_capacity_ends_the_attempt_in_newer_minors():
    slices = a_slice("s", device("g0", capacity={"memory": "-1"}))
    assert devices_of(allocate(claim(), slices, release=OLD)) == [["g0"]]
    with pytest.raises(AllocationError, match="capacity value is negative"):
        allocate(claim(), slices)


@pytest.mark.parametrize(
    ("values", "old_devices", "new_devices"),
    [
        ("abac", [["g0", "g1", "g2"]], [["g0", "g1", "g3"]]),
        ("aba", [["g0", "g1", "g2"]], Refusal.NOT_FOUND),
    ],
)
def test_distinct_values_of_all_devices_of_a_request_only_in_newer_minors(values, old_devices, new_devices):
    slices = a_slice("s", *(device(f"g{index}", attributes={"m": value}) for index, value in enumerate(values)))
    distinct = claim(request(count=3), constraints=[{"distinctAttribute": f"{DRIVER}/m"}])
    assert devices_of(allocate(distinct, slices, release=OLD)) == old_devices
    assert devices_of(allocate(distinct, slices)) == new_devices


def test_all_devices_against_a_constraint_end_the_attempt():
    three_requests = claim(request(allocationMode="All"), constraints=[NEVER])
    with pytest.raises(
        AllocationError, match=f"cannot add device {DRIVER}/p/g0 because a claim constraint would not be"
    ):
        allocate(three_requests, a_slice("s", "g0"))


def test_earlier_constraints_forget_a_device_that_a_later_one_refuses():
    match = {"matchAttribute": f"{DRIVER}/numa"}
    slices = a_slice("s", device("g0", attributes={"numa": 0}), device("g1", attributes={"numa": 1, f"{DRIVER}/x": 1}))
    three_requests = claim(constraints=[match, {"matchAttribute": f"{DRIVER}/x"}])
    assert devices_of(allocate(three_requests, slices)) == [["g1"]]
