import msgspec
import pytest

from podium.devices.capacity import Amount, consumption, has_capacity
from podium.objects.devices import DeviceCapacity

RANGE = {"default": "1Gi", "validRange": {"min": "2Gi", "max": "8Gi", "step": "2Gi"}}
VALUES = {"default": "1Gi", "validValues": ["2Gi", "4Gi"]}
GI = 2**30 * 10**9


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


def test_default_is_recognized_by_its_text():
    policy = {"default": "1Gi", "validRange": {"min": "1Mi", "max": "512Mi"}}
    assert has_capacity({"memory": "1Gi"}, capacities(policy=policy))
    assert not has_capacity({"memory": "1024Mi"}, capacities(policy=policy))


def test_what_is_taken_counts():
    assert has_capacity({"memory": "4Gi"}, capacities(), {"memory": 8 * GI}, {"memory": 4 * GI})
    assert not has_capacity({"memory": "5Gi"}, capacities(), {"memory": 8 * GI}, {"memory": 4 * GI})


def test_capacity_that_the_device_lacks_is_refused():
    assert not has_capacity({"cores": "1"}, capacities())


def test_computed_amounts_are_written_in_the_binary_format():
    texts = [Amount.from_int(number).text for number in (500, 1000, 3000, 3 * 2**20)]
    assert texts == ["500", "1k", "3000", "3Mi"]
