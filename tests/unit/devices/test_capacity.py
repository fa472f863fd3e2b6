from dataclasses import replace

import msgspec
import pytest

from podium.devices import capacity
from podium.devices.capacity import Amount
from podium.devices.errors import CapacityError
from podium.objects.devices import DeviceCapacity
from tests.unit.devices.cluster import NEW, OLD

RANGE = {"default": "1Gi", "validRange": {"min": "2Gi", "max": "8Gi", "step": "2Gi"}}
VALUES = {"default": "1Gi", "validValues": ["2Gi", "4Gi"]}
GI = 2**30 * 10**9


def consumption(amounts, capacities, release=NEW):
    return capacity.consumption(amounts, capacities, release.devices)


def has_capacity(amounts, capacities, *consumptions, release=NEW):
    return capacity.has_capacity(amounts, capacities, release.devices, *consumptions)


def capacities(value="16Gi", policy=None):
    return {"memory": msgspec.convert({"value": value, "requestPolicy": policy}, DeviceCapacity)}


@pytest.mark.parametrize(
    ("policy", "request_amount", "amount"),
    [
        (None, None, "16Gi"),
        (None, "3000Mi", "3000Mi"),
        (RANGE, None, "1Gi"),
        (RANGE, "1Mi", "2Gi"),
        (RANGE, "3Gi", "4Gi"),
        (RANGE, "4Gi", "4Gi"),
        ({"validRange": {"min": "2Gi"}}, "2500Mi", "2500Mi"),
        (VALUES, "3Gi", "4Gi"),
        (VALUES, "5Gi", "5Gi"),
    ],
)
def test_request_is_rounded_up_to_what_the_policy_allows(policy, request_amount, amount):
    amounts = consumption({} if request_amount is None else {"memory": request_amount}, capacities(policy=policy))
    assert amounts["memory"].text == amount


@pytest.mark.parametrize(
    ("policy", "request_amount", "fits"),
    [
        (None, "16Gi", True),
        (None, "17Gi", False),
        (RANGE, "9Gi", False),
        (RANGE, "7Gi", True),
        (RANGE, None, True),
        (VALUES, "5Gi", False),
        (VALUES, None, True),
        ({**VALUES, "default": "0.1Gi"}, None, False),
    ],
)
def test_amount_beyond_the_policy_or_the_capacity_does_not_fit(policy, request_amount, fits):
    assert has_capacity({} if request_amount is None else {"memory": request_amount}, capacities(policy=policy)) is fits


def test_a_capacity_beyond_an_int64_wraps_around_before_it_is_compared_with_the_steps():
    for release in (OLD, NEW):
        assert not has_capacity({}, capacities("10E", {"validRange": {"min": "1", "step": "3"}}), release=release)
        assert has_capacity({}, capacities("10P", {"validRange": {"min": "1", "step": "3"}}), release=release)


def test_default_is_recognized_by_its_text():
    policy = {"default": "1Gi", "validRange": {"min": "1Mi", "max": "512Mi"}}
    assert has_capacity({"memory": "1Gi"}, capacities(policy=policy))
    assert not has_capacity({"memory": "1024Mi"}, capacities(policy=policy))


def test_what_is_taken_counts():
    assert has_capacity({"memory": "4Gi"}, capacities(), {"memory": 8 * GI}, {"memory": 4 * GI})
    assert not has_capacity({"memory": "5Gi"}, capacities(), {"memory": 8 * GI}, {"memory": 4 * GI})


def test_capacity_that_the_device_lacks_is_refused():
    assert not has_capacity({"cores": "1"}, capacities())


@pytest.mark.parametrize(
    ("form", "expected_texts"),
    [
        ("BinarySI", ["500", "1k", "3000", "3Mi"]),
        ("DecimalSI", ["500", "1k", "3k", "3145728"]),
        ("DecimalExponent", ["500", "1e3", "3e3", "3145728"]),
    ],
)
def test_computed_amounts_are_written_in_a_format(form, expected_texts):
    assert [Amount.from_int(number, form).text for number in (500, 1000, 3000, 3 * 2**20)] == expected_texts


@pytest.mark.parametrize(
    ("minimum", "step", "request_amount", "old_amount", "new_amount"),
    [
        ("1", "1", "2048", "2Ki", "2048"),
        ("1k", "1k", "1500", "2000", "2k"),
        ("1Ki", "1Ki", "1500", "2Ki", "2Ki"),
        ("1e3", "1e3", "1500", "2000", "2e3"),
        ("1k", "1k", "7", "1k", "1k"),
    ],
)
def test_rounded_amounts_have_the_format_of_the_step_only_in_newer_minors(
    minimum, step, request_amount, old_amount, new_amount
):
    policy = {"validRange": {"min": minimum, "step": step}}
    for release, amount in ((OLD, old_amount), (NEW, new_amount)):
        amounts = consumption({"memory": request_amount}, capacities(policy=policy), release)
        assert amounts["memory"].text == amount


_STEPS = {"validRange": {"min": "1", "step": "2"}}
_NOT_REPRESENTABLE = 'capacity "memory": capacity request cannot be represented in the device\'s range arithmetic: '


@pytest.mark.parametrize(
    ("value", "policy", "request_amount", "problem"),
    [
        ("16Gi", _STEPS, "10E", f"{_NOT_REPRESENTABLE}request 10E exceeds MaxInt64"),
        (
            "16Gi",
            {"validRange": {"min": "2", "step": "2"}},
            "9223372036854775807",
            f"{_NOT_REPRESENTABLE}rounding request 9223372036854775807 up to the next step passes MaxInt64",
        ),
        ("16Gi", None, "-1", 'capacity "memory": capacity value is negative'),
        ("-1Gi", None, None, 'capacity "memory": capacity value is negative'),
    ],
)
def test_amounts_that_cannot_be_computed_with_are_errors_only_in_newer_minors(value, policy, request_amount, problem):
    amounts = {} if request_amount is None else {"memory": request_amount}
    has_capacity(amounts, capacities(value, policy), release=OLD)
    for compute in (consumption, has_capacity):
        with pytest.raises(CapacityError) as raised:
            compute(amounts, capacities(value, policy))
        assert str(raised.value) == problem


def test_an_error_wins_over_a_capacity_that_does_not_suffice():
    two_capacities = {"cores": capacities("1")["memory"], **capacities(policy=_STEPS)}
    amounts = {"cores": "2", "memory": "10E"}
    with pytest.raises(CapacityError):
        has_capacity(amounts, two_capacities)
    assert not has_capacity(amounts, two_capacities, release=OLD)


IN_THOUSANDTHS = replace(NEW, devices=replace(NEW.devices, round_to_thousandths=True))


@pytest.mark.parametrize(
    ("valid_range", "request_amount", "amount", "amount_in_thousandths"),
    [
        ({"min": "500m", "step": "500m"}, "1200m", "2", "1500m"),
        ({"min": "500m", "step": "500m"}, "1600m", "2", "2"),
        ({"min": "1", "step": "1"}, "1200m", "2", "2"),
        ({"min": "1e0", "step": "5e-1"}, "1200m", "2", "1500e-3"),
        ({"min": "1", "step": "1u"}, "1500m", "2", "2"),
        ({"min": "1n", "step": "500m"}, "1200m", "2", "2"),
        ({"min": "500m", "step": "500m"}, "1n", "500m", "500m"),
    ],
)
def test_amounts_are_rounded_in_thousandths_with_the_gate(valid_range, request_amount, amount, amount_in_thousandths):
    for release, text in ((NEW, amount), (IN_THOUSANDTHS, amount_in_thousandths)):
        amounts = consumption({"memory": request_amount}, capacities(policy={"validRange": valid_range}), release)
        assert amounts["memory"].text == text


@pytest.mark.parametrize(
    ("request_amount", "problem"),
    [
        ("1200001u", "request 1200001u is not a representable milli value"),
        ("9223372036854775807", "request 9223372036854775807 is not a representable milli value"),
        (
            "9223372036854775807m",
            "rounding request 9223372036854775807m up to the next step passes the milli-value range",
        ),
    ],
)
def test_amounts_that_thousandths_do_not_hold_are_errors(request_amount, problem):
    policy = {"validRange": {"min": "500m", "step": "500m"}}
    if problem is None:
        assert (
            consumption({"memory": request_amount}, capacities(policy=policy), IN_THOUSANDTHS)["memory"].text == "500m"
        )
        return
    with pytest.raises(CapacityError) as raised:
        consumption({"memory": request_amount}, capacities(policy=policy), IN_THOUSANDTHS)
    assert str(raised.value) == f"{_NOT_REPRESENTABLE}{problem}"


def test_a_fraction_of_a_step_is_allowed_only_with_the_gate():
    policy = {"default": "1500m", "validRange": {"min": "500m", "step": "500m", "max": "2"}}
    assert has_capacity({"memory": "1400m"}, capacities("1500m", policy), release=IN_THOUSANDTHS)
    assert not has_capacity({"memory": "1400m"}, capacities("1500m", policy))
    assert not has_capacity({"memory": "2100m"}, capacities(policy=policy), release=IN_THOUSANDTHS)
    full = {"validRange": {"min": "500m", "step": "400m"}}
    assert has_capacity({}, capacities("1300m", full), release=IN_THOUSANDTHS)
    assert not has_capacity({}, capacities("1400m", full), release=IN_THOUSANDTHS)
    assert not has_capacity({}, capacities("1300001u", full), release=IN_THOUSANDTHS)
