from podium.devices import Refusal
from tests.unit.devices.cluster import DRIVER, a_slice, allocate, claim, device, devices_of, either, request

NUMA = {"matchAttribute": f"{DRIVER}/numa"}
INDEX = {"cel": {"expression": f'device.attributes["{DRIVER}"].numa == 1'}}


def numa(name, number):
    return device(name, attributes={"numa": number})


def names(count):
    return [f"g{number}" for number in range(count)]


def results(answer):
    (result,) = answer
    return [(device_result.request, device_result.device) for device_result in result.devices.results]


def test_search_takes_another_device_where_the_first_leads_nowhere():
    slices = a_slice("s", numa("g0", 0), numa("g1", 1), numa("g2", 1))
    assert devices_of(allocate(claim(request(count=2), constraints=[NUMA]), slices)) == [["g1", "g2"]]


def test_devices_of_one_request_are_combinations_and_of_several_are_permutations():
    slices = a_slice("s", numa("g0", 1), numa("g1", 0))
    picky = request("b", selectors=[INDEX])
    assert results(allocate(claim(request("a"), picky), slices)) == [("a", "g1"), ("b", "g0")]


def test_earlier_claim_gives_way_to_a_later_one():
    slices = a_slice("s", numa("g0", 1), numa("g1", 0))
    assert devices_of(allocate([claim(), claim(request(selectors=[INDEX]), name="d")], slices)) == [["g1"], ["g0"]]


def test_first_alternative_that_leads_to_a_complete_solution_is_taken():
    claim_spec = claim(either("a", request("big", count=2), request("small")), request("b"))
    assert results(allocate(claim_spec, a_slice("s", *names(2)))) == [("a/small", "g0"), ("b", "g1")]
    assert results(allocate(claim_spec, a_slice("s", *names(3))))[0] == ("a/big", "g0")


def test_alternative_that_needs_too_many_devices_is_passed_over():
    claim_spec = claim(either("a", request("big", count=20), request("small")), request("b", count=20))
    assert len(results(allocate(claim_spec, a_slice("s", *names(50))))) == 21


def test_all_devices_means_all_and_at_least_one():
    all_devices = claim(request(allocationMode="All"))
    assert devices_of(allocate(all_devices, a_slice("s", "g0", "g1"))) == [["g0", "g1"]]
    assert allocate(all_devices) is Refusal.NOT_FOUND
    assert allocate([claim(name="a"), all_devices], a_slice("s", "g0", "g1")) is Refusal.NOT_FOUND


def test_incomplete_pool_offers_no_devices():
    assert devices_of(allocate(claim(), a_slice("s", "g0", slices=2), a_slice("t", "g1", pool="q"))) == [["g1"]]
