import pytest

from podium.devices import AllocationError, Refusal
from tests.unit.devices.cluster import DRIVER, a_slice, allocate, allocation, claim, device, devices_of, either, request

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


def test_counters_of_a_device_that_is_refused_by_its_taint_stay_charged():
    tainted = part("g0", "6", taints=[{"key": "k", "effect": "NoSchedule"}])
    assert allocate(claim(), *partitioned_slice(tainted, part("g1", "4"))) is Refusal.NOT_FOUND
    assert devices_of(allocate(claim(), *partitioned_slice(tainted, part("g1", "2")))) == [["g1"]]


def test_counters_of_a_shared_device_are_charged_once_and_never_given_back():
    slices = partitioned_slice(part("g0", "6", allowMultipleAllocations=True), part("g1", "4"))
    assert devices_of(allocate(claim(request(count=1), request("q")), *slices)) == [["g0", "g0"]]
    picky = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]
    assert allocate(claim(request(), request("q", selectors=picky)), *slices) is Refusal.NOT_FOUND


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
