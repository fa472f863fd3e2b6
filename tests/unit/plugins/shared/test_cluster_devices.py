from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.devices import DeviceID
from podium.objects.claims import AllocationResult, ResourceClaimStatus
from podium.objects.unreadable import UnreadableClaim
from podium.plugins.shared.cluster_devices import ClusterDevices
from tests.unit.plugins.dynamic_resources.claims import (
    CLASS,
    DRIVER,
    GPU,
    DeviceHandle,
    a_claim,
    a_slice,
    allocation,
)

G0, G1 = DeviceID(DRIVER, "n1", "g0"), DeviceID(DRIVER, "n1", "g1")


def device_allocation(*devices: str) -> AllocationResult:
    return msgspec.convert(allocation(*devices), AllocationResult)


@pytest.fixture
def handle() -> DeviceHandle:
    return DeviceHandle(a_claim("a", allocation=allocation("g0")), a_claim("b"), a_slice("n1", "g0", "g1"))


def test_devices_are_allocated_as_claims_come_change_and_go(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    assert devices.allocated_devices().is_dedicated(G0)
    handle.claims.put(a_claim("b", version="2", allocation=allocation("g1")))
    assert devices.allocated_devices().is_dedicated(G1)
    handle.claims.put(a_claim("b", version="3"))
    assert not devices.allocated_devices().is_dedicated(G1)
    handle.claims.drop("default/a")
    assert not devices.allocated_devices().is_dedicated(G0)


def test_a_claim_that_becomes_unreadable_or_readable_holds_what_it_may_hold(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    assert not devices.allocated_devices().is_allocated(G1)
    any_allocation = msgspec.convert(allocation(""), AllocationResult)
    meta, status = a_claim("b", version="2").metadata, ResourceClaimStatus(allocation=any_allocation)
    handle.claims.put(UnreadableClaim(metadata=meta, status=status, is_allocation_read=False))
    assert devices.allocated_devices().is_allocated(G1)
    handle.claims.put(a_claim("b", version="3"))
    assert (devices.allocated_devices().is_dedicated(G0), devices.allocated_devices().is_dedicated(G1)) == (True, False)


def test_a_claim_that_becomes_unreadable_holds_its_devices_until_it_is_gone_or_readable(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    devices.allocated_devices()
    for version in ("2", "3"):
        meta = a_claim("a", version=version).metadata
        handle.claims.put(UnreadableClaim(metadata=meta, is_allocation_read=False))
        assert devices.allocated_devices().is_dedicated(G0)
    handle.claims.put(a_claim("a", version="4"))
    assert not devices.allocated_devices().is_dedicated(G0)


def test_a_claim_that_became_unreadable_before_any_pod_needed_claims_holds_its_devices() -> None:
    handle = DeviceHandle()
    devices = ClusterDevices(handle)
    handle.claims.put(a_claim("a", allocation=allocation("g0")))
    handle.claims.put(UnreadableClaim(metadata=a_claim("a", version="2").metadata, is_allocation_read=False))
    assert devices.allocated_devices().is_dedicated(G0)


def test_what_is_in_flight_counts_until_the_last_pod_lets_go(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    devices.start_allocation("uid-b", device_allocation("g1"))
    devices.start_allocation("uid-b", device_allocation("g1"))
    assert devices.is_in_flight("uid-b")
    assert devices.allocated_devices().is_dedicated(G0)
    assert devices.allocated_devices().is_dedicated(G1)
    assert not devices.end_allocation("uid-b")
    assert devices.end_allocation("uid-b")
    assert not devices.end_allocation("uid-b")
    assert not devices.allocated_devices().is_dedicated(G1)


@pytest.mark.parametrize("is_simulated", [False, True])
def test_an_allocation_that_the_last_pod_gives_up_is_reported_unless_simulated(
    handle: DeviceHandle, is_simulated: bool
) -> None:
    devices, claim, losses = ClusterDevices(handle), a_claim("b"), []
    devices.lost = lambda old, new: losses.append((old.status.allocation, new))
    for _ in range(2):
        devices.start_allocation("uid-b", device_allocation("g1"), is_simulated=is_simulated)
    assert not devices.give_up_allocation("uid-b", claim)
    assert losses == []
    assert devices.give_up_allocation("uid-b", claim)
    assert losses == ([] if is_simulated else [(device_allocation("g1"), claim)])


def test_devices_whose_allocation_may_have_been_written_are_kept_until_the_claim_is_read(handle: DeviceHandle) -> None:
    devices, claim = ClusterDevices(handle), a_claim("b")
    devices.start_allocation("uid-b", device_allocation("g1"))
    devices.doubt(claim, device_allocation("g1"))
    assert devices.end_allocation("uid-b")
    assert not devices.is_in_flight("uid-b")
    assert devices.overdue_doubts() == []
    handle.clock.advance(61.0)
    for _ in range(2):
        (doubt,) = devices.overdue_doubts()
        assert doubt.claim is claim
        assert devices.overdue_doubts() == []
        handle.clock.advance(5.0)
    assert devices.allocated_devices().is_dedicated(G1)
    devices.settle(doubt, None)
    assert devices.overdue_doubts() == []
    assert not devices.allocated_devices().is_dedicated(G1)


def test_an_answer_about_an_earlier_allocation_of_the_claim_leaves_the_devices_of_a_later_one(
    handle: DeviceHandle,
) -> None:
    devices, claim = ClusterDevices(handle), a_claim("b")
    devices.doubt(claim, device_allocation("g1"))
    handle.clock.advance(60.0)
    (doubt,) = devices.overdue_doubts()
    devices.doubt(claim, device_allocation("g1"))
    devices.settle(doubt, None)
    assert devices.allocated_devices().is_dedicated(G1)


def test_devices_in_flight_are_kept_if_their_claim_loses_them_before_the_attempt_has_ended(
    handle: DeviceHandle,
) -> None:
    """The claim controller has cleared what was written; the attempt, which got no answer, writes it again."""
    devices, losses = ClusterDevices(handle), list[Any]()
    devices.lost = lambda *states: losses.append(states)
    devices.claims.read()
    devices.start_allocation("uid-b", device_allocation("g1"))
    handle.claims.put(a_claim("b", version="2", allocation=allocation("g1")))
    assert devices.allocated_devices().is_dedicated(G1)
    handle.claims.put(a_claim("b", version="3"))
    assert devices.allocated_devices().is_dedicated(G1)
    handle.claims.put(a_claim("b", version="4", allocation=allocation("g1")))
    assert not devices.give_up_allocation("uid-b", a_claim("b"))
    assert losses == []
    assert devices.allocated_devices().is_dedicated(G1)
    handle.claims.put(a_claim("b", version="5"))
    assert not devices.allocated_devices().is_dedicated(G1)
    devices.start_allocation("uid-b", device_allocation("g1"))
    handle.claims.put(a_claim("b", version="6", allocation=allocation("g1")))
    handle.claims.put(a_claim("b", version="7"))
    assert devices.end_allocation("uid-b")
    assert not devices.allocated_devices().is_dedicated(G1)


def test_an_earlier_state_of_a_claim_says_nothing_about_a_later_write_without_an_answer(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    devices.claims.read()
    devices.doubt(a_claim("b", version="3"), device_allocation("g1"))
    handle.claims.put(a_claim("b", version="2", allocation=allocation("g1")))
    handle.claims.put(a_claim("b", version="3"))
    assert devices.allocated_devices().is_dedicated(G1)
    handle.claims.put(a_claim("b", version="4", allocation=allocation("g1")))
    handle.claims.put(a_claim("b", version="5"))
    assert not devices.allocated_devices().is_dedicated(G1)


def test_classes_and_slices_are_followed(handle: DeviceHandle) -> None:
    devices = ClusterDevices(handle)
    assert devices.class_named("gpu") is devices.class_for(GPU) is CLASS
    handle.classes.drop("gpu")
    assert devices.class_named("gpu") is devices.class_for(GPU) is None
    handle.classes.put(CLASS)
    assert devices.class_for(GPU) is CLASS
    assert len(devices.inventory().candidates("n1")) == 1
    handle.slices.drop("n1")
    assert devices.inventory().candidates("n1") == []
    handle.slices.put(a_slice("n1", "g0"))
    handle.slices.put(a_slice("n1", "g2"))
    ((entry,),) = (devices.inventory().candidates("n1"),)
    assert [device.id.device for device in entry.devices] == ["g2"]
