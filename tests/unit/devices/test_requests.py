import re

import msgspec
import pytest

from podium.devices import AllocationError
from podium.objects.devices import DeviceClass
from tests.unit.devices.cluster import (
    DRIVER,
    NEW,
    OLD,
    a_slice,
    allocate,
    allocator,
    answer_of,
    claim,
    device,
    devices_of,
    either,
    request,
)

HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


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
        (
            request(count=33),
            "claim ns/c, request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for",
        ),
        (
            request(derivedAttributes=[{"name": "a/b", "expression": "1"}], deviceClassName=""),
            "claim ns/c, request r: cannot handle request with derived attributes, the feature is disabled",
        ),
        (request(capacity={"requests": {"memory": "x"}}), "claim ns/c, request r, capacity memory: .* unknown suffix"),
        (request(selectors=cel("device.nope")), "claim ns/c: selector #0: CEL compile error: "),
        (
            request(selectors=cel(f'device.attributes["{DRIVER}"].x == 1')),
            f"^claim ns/c: selector #0 on device {DRIVER}/p/g0: CEL runtime error: no such key: x. {re.escape(HINT)}$",
        ),
        (
            request(selectors=cel("quantity(device.driver).isInteger()")),
            rf"^claim ns/c: selector #0 on device {DRIVER}/p/g0: CEL runtime error: (?!.*consider)",
        ),
    ],
)
def test_request_that_cannot_be_allocated_on_any_account_ends_the_attempt(request_spec, text):
    with pytest.raises(AllocationError, match=text):
        allocate(claim(request_spec), a_slice("s", "g0"))


@pytest.mark.parametrize(
    ("requests", "old_text", "new_text"),
    [
        (
            [request(count=33)],
            "^claim ns/c: number of requested devices 33 exceeds the claim limit of 32$",
            "^claim ns/c, request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for$",
        ),
        (
            [request(count=30), either("q", request("x", count=5), request("y", count=3))],
            "^claim ns/c: number of requested devices 33 exceeds the claim limit of 32$",
            "^claim ns/c, request q: adding 3 devices exceeds the claim limit of 32, with 30 already accounted for$",
        ),
        (
            [request(count=33), request("q", deviceClassName="tpu")],
            "^claim ns/c, request q: could not retrieve device class tpu",
            "^claim ns/c, request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for$",
        ),
        (
            [request(count=2**62), request("q", count=2**62)],
            f"^claim ns/c: number of requested devices {2**63} exceeds the claim limit of 32$",
            f"^claim ns/c, request r: adding {2**62} devices exceeds the claim limit of 32, with 0",
        ),
        (
            [request(selectors=cel(f'device.attributes["{DRIVER}"].x == 1'))],
            "^claim ns/c: selector #0: CEL runtime error: no such key: x$",
            f"^claim ns/c: selector #0 on device {DRIVER}/p/g0: CEL runtime error: no such key: x. consider using CEL",
        ),
        (
            [request(selectors=cel("device.nope"))],
            "^claim ns/c: selector #0: CEL compile error: (?!.*on device)",
            "^claim ns/c: selector #0: CEL compile error: (?!.*on device)",
        ),
    ],
)
def test_texts_of_errors_are_those_of_the_minor(requests, old_text, new_text):
    for release, text in ((OLD, old_text), (NEW, new_text)):
        with pytest.raises(AllocationError, match=text):
            allocate(claim(*requests), a_slice("s", "g0"), release=release)


def test_thirty_two_devices_are_not_too_many():
    slices = a_slice("s", *(f"g{number}" for number in range(40)))
    for release in (OLD, NEW):
        (devices,) = devices_of(allocate(claim(request(count=30), request("q", count=2)), slices, release=release))
        assert len(devices) == 32


def test_derived_attributes_are_unknown_to_older_minors():
    derived = request(derivedAttributes=[{"name": "a/b", "expression": "1"}])
    assert devices_of(allocate(claim(derived), a_slice("s", "g0"), release=OLD)) == [["g0"]]


def test_a_selector_of_the_class_names_the_device_that_it_fails_for():
    (device_class,) = (
        msgspec.convert({"metadata": {"name": "odd"}, "spec": {"selectors": cel(expression)}}, DeviceClass)
        for expression in (f'device.attributes["{DRIVER}"].x == 1',)
    )
    asked = allocator(a_slice("s", "g0"))
    asked._class_of = {"odd": device_class}.get
    with pytest.raises(AllocationError, match=f"^class odd: selector #0 on device {DRIVER}/p/g0: CEL runtime error: "):
        answer_of(asked, [claim(request(deviceClassName="odd"))])


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
