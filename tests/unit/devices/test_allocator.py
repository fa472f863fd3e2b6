import pytest

from podium.devices import AllocationError, Refusal, StepsExceededError
from tests.unit.devices.cluster import (
    a_slice,
    allocate,
    allocation,
    allocator,
    answer_of,
    claim,
    device,
    devices_of,
    request,
)


def test_first_free_device_is_taken():
    assert devices_of(allocate(claim(), a_slice("s", "g0", "g1"), claim_in_use=allocation({"device": "g0"}))) == [
        ["g1"]
    ]


def test_node_without_devices_gets_nothing():
    assert allocate(claim(), a_slice("s", "g0"), node="n2") is Refusal.NOT_FOUND


def test_invalid_pool_is_the_reason_only_if_nothing_else_was_found():
    invalid = a_slice("s", "g0", "g0", pool="a")
    assert allocate(claim(), invalid) is Refusal.INVALID_POOLS
    assert devices_of(allocate(claim(), invalid, a_slice("t", "g1"))) == [["g1"]]


def test_claims_of_a_pod_do_not_get_the_same_device():
    claims = [claim(name="a"), claim(name="b")]
    assert devices_of(allocate(claims, a_slice("s", "g0", "g1"))) == [["g0"], ["g1"]]
    assert allocate(claims, a_slice("s", "g0")) is Refusal.NOT_FOUND


def test_administrators_get_devices_that_are_in_use():
    admin = claim(request(adminAccess=True))
    assert devices_of(allocate(admin, a_slice("s", "g0"), claim_in_use=allocation({"device": "g0"}))) == [["g0"]]
    twice = claim(request("a", adminAccess=True), request("b", adminAccess=True))
    assert allocate(twice, a_slice("s", "g0")) is Refusal.NOT_FOUND


def test_claim_without_requests_gets_an_empty_allocation():
    (solutions,) = answer_of(allocator(), [claim().__class__(metadata=claim().metadata)])
    assert solutions.devices.results == ()


def test_search_ends_after_a_number_of_steps():
    slices = a_slice("s", *(f"g{number}" for number in range(40)))
    claims = [claim(request(count=10), request("q", count=31), name="a")]
    with pytest.raises(AllocationError, match="request q: adding 31 devices exceeds the claim limit of 32"):
        answer_of(allocator(slices), claims)
    odd = [claim(request(count=16), constraints=[{"matchAttribute": "x.org/y"}])]
    assert answer_of(allocator(slices), odd) is Refusal.NOT_FOUND
    with pytest.raises(StepsExceededError):
        answer_of(allocator(slices, steps_max=10), odd)


def test_many_devices_do_not_exhaust_the_stack():
    slices = [a_slice(f"s{n}", *(f"g{n}-{i}" for i in range(128)), pool=f"p{n}") for n in range(8)]
    claims = [claim(request(count=32), name=f"c{number}") for number in range(32)]
    solutions = devices_of(allocate(claims, *slices))
    assert sum(map(len, solutions)) == len({device_names for devices in solutions for device_names in devices}) == 1024


def test_taints_need_a_toleration():
    tainted = device("g0", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    harmless = device("g1", taints=[{"key": "k", "effect": "None"}])
    assert devices_of(allocate(claim(), a_slice("s", tainted, harmless))) == [["g1"]]
    tolerant = claim(request(tolerations=[{"key": "k", "operator": "Exists"}]))
    assert devices_of(allocate(tolerant, a_slice("s", tainted, harmless))) == [["g0"]]
