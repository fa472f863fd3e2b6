import pytest

from podium.devices import AllocationError
from tests.unit.devices.cluster import DRIVER, a_slice, allocate, claim, device, devices_of, either, request


def cel(expression):
    return [{"cel": {"expression": expression}}]


@pytest.mark.parametrize(
    ("request_spec", "text"),
    [
        (request(selectors=[{}]), "claim ns/c, request r, selector #0: CEL expression empty"),
        (request(deviceClassName=""), "claim ns/c, request r: missing device class name"),
        ({"name": "r"}, "claim ns/c, request r: missing device class name"),
        (request(deviceClassName="tpu"), "claim ns/c, request r: could not retrieve device class tpu: .* not found"),
        (request(allocationMode="Some"), "claim ns/c, request r: unsupported count mode Some"),
        (either("r", request("s", deviceClassName="tpu")), "claim ns/c, request s: could not retrieve"),
        (request(count=33), "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"),
        (request(capacity={"requests": {"memory": "x"}}), "claim ns/c, request r, capacity memory: .* unknown suffix"),
        (request(selectors=cel("device.nope")), "claim ns/c: selector #0: CEL compile error: "),
        (
            request(selectors=cel(f'device.attributes["{DRIVER}"].x == 1')),
            "claim ns/c: selector #0: CEL runtime error: ",
        ),
    ],
)
def test_request_that_cannot_be_allocated_on_any_account_ends_the_attempt(request_spec, text):
    with pytest.raises(AllocationError, match=text):
        allocate(claim(request_spec), a_slice("s", "g0"))


def test_constraint_of_an_unknown_kind_ends_the_attempt():
    with pytest.raises(AllocationError, match="claim ns/c, constraint #1: empty constraint"):
        allocate(claim(constraints=[{"matchAttribute": "a/b"}, {}]), a_slice("s", "g0"))


@pytest.mark.parametrize(
    ("pool_slices", "state"),
    [(a_slice("t", "g", pool="q", slices=2), "being updated"), (a_slice("t", "g", "g", pool="q"), "invalid")],
)
def test_all_devices_cannot_be_had_while_a_pool_is_broken(pool_slices, state):
    with pytest.raises(AllocationError, match=f"resource pool {DRIVER}/q is currently {state}"):
        allocate(claim(request(allocationMode="All")), a_slice("s", "g0"), pool_slices)


def test_all_devices_are_those_that_the_selectors_choose():
    slices = a_slice("s", device("g0", attributes={"index": 0}), device("g1", attributes={"index": 1}))
    request_for_all = request(allocationMode="All", selectors=cel(f'device.attributes["{DRIVER}"].index > 0'))
    assert devices_of(allocate(claim(request_for_all), slices)) == [["g1"]]


def test_device_chooses_its_own_nodes_where_the_slice_leaves_that_to_it():
    slices = a_slice("s", device("g0", nodeName="n2"), device("g1", allNodes=True), perDeviceNodeSelection=True)
    assert devices_of(allocate(claim(), slices)) == [["g1"]]
    assert devices_of(allocate(claim(), slices, node="n2")) == [["g0"]]
