import msgspec

from podium.devices.availability import Binding, binding_of, has_timed_out, is_bound_or_may_be
from podium.objects.claims import AllocatedDeviceStatus, ResourceClaimStatus
from podium.objects.times import parse_time
from tests.unit.devices.cluster import DRIVER, allocation, claim

SINCE = "2026-01-01T00:00:00Z"
CONDITIONAL = {"device": "g", "bindingConditions": ["ready", "steady"], "bindingFailureConditions": ["broken"]}


def claim_with_conditions(result=CONDITIONAL, since=SINCE, **conditions):
    """A claim with one device, whose driver reports these conditions; without any it reports nothing."""
    device_status = {
        "driver": DRIVER,
        "pool": "p",
        "device": "g",
        "conditions": [{"type": name, "status": str(value)} for name, value in conditions.items()],
    }
    status = ResourceClaimStatus(
        allocation=msgspec.structs.replace(allocation(result), allocation_timestamp=since),
        devices=(msgspec.convert(device_status, AllocatedDeviceStatus),) if conditions else (),
    )
    return msgspec.structs.replace(claim(), status=status)


def test_device_is_ready_with_all_its_conditions():
    assert binding_of(claim_with_conditions(ready=True, steady=True)) is Binding.READY
    assert binding_of(claim_with_conditions(ready=True, steady=False)) is Binding.PENDING
    assert binding_of(claim_with_conditions(ready=True)) is Binding.PENDING
    assert binding_of(claim_with_conditions()) is Binding.PENDING


def test_one_failure_condition_fails_the_device():
    assert binding_of(claim_with_conditions(ready=True, steady=True, broken=True)) is Binding.FAILED
    assert binding_of(claim_with_conditions(ready=True, steady=True, broken=False)) is Binding.READY


def test_device_without_binding_conditions_is_ready():
    assert binding_of(claim_with_conditions({"device": "g"})) is Binding.READY
    assert binding_of(claim()) is Binding.READY


def test_device_that_is_not_ready_in_time_makes_the_claim_unavailable():
    now_s = parse_time(SINCE) + 600
    assert is_bound_or_may_be(claim_with_conditions(), now_s, 600)
    assert not is_bound_or_may_be(claim_with_conditions(), now_s + 1, 600)
    assert is_bound_or_may_be(claim_with_conditions(ready=True, steady=True), now_s + 1, 600)
    assert not is_bound_or_may_be(claim_with_conditions(broken=True), now_s, 600)


def test_claim_without_a_time_or_conditions_never_times_out():
    assert not has_timed_out(claim_with_conditions(since=None), 1e12, 600)
    assert not has_timed_out(claim_with_conditions({"device": "g"}), 1e12, 600)
    assert not has_timed_out(claim(), 1e12, 600)
