import msgspec

from podium.devices import AllocatedDevices, DeviceID
from podium.devices.allocated import ConsumedCapacity
from podium.objects.claims import ResourceClaimStatus
from tests.unit.devices.cluster import DRIVER, allocation, claim

G = DeviceID(DRIVER, "p", "g")
GI = 2**30 * 10**9


def share(uid, **capacity):
    return {"device": "g", "shareID": uid, "consumedCapacity": capacity}


def test_device_is_held_until_the_allocation_goes():
    allocated = AllocatedDevices()
    allocated.add(allocation({"device": "g"}))
    assert allocated.is_dedicated(G)
    assert allocated.is_allocated(G)
    allocated.remove(allocation({"device": "g"}))
    assert not allocated.is_allocated(G)


def test_device_that_two_claims_hold_is_free_when_the_first_goes():
    allocated = AllocatedDevices()
    for _ in range(2):
        allocated.add(allocation({"device": "g"}))
    allocated.remove(allocation({"device": "g"}))
    assert not allocated.is_allocated(G)


def test_administrators_access_does_not_count():
    allocated = AllocatedDevices()
    allocated.add(allocation({"device": "g", "adminAccess": True}))
    assert not allocated.is_allocated(G)


def test_shares_add_up():
    allocated = AllocatedDevices()
    allocated.add(allocation(share("a", memory="1Gi")))
    allocated.add(allocation(share("b", memory="2Gi")))
    assert (allocated.is_dedicated(G), allocated.is_allocated(G)) == (False, True)
    assert allocated.consumed.of(G) == {"memory": 3 * GI}
    allocated.remove(allocation(share("a", memory="1Gi")))
    allocated.remove(allocation(share("b", memory="2Gi")))
    assert not allocated.is_allocated(G)
    assert G not in allocated.consumed


def test_share_without_capacity_holds_the_device_but_no_capacity():
    allocated = AllocatedDevices()
    allocated.add(allocation(share("a")))
    assert allocated.is_allocated(G)
    assert G not in allocated.consumed


def test_claims_without_an_allocation_hold_nothing():
    held = msgspec.structs.replace(claim(), status=ResourceClaimStatus(allocation=allocation({"device": "g"})))
    assert AllocatedDevices.of([claim(), held]).is_allocated(G)
    assert not AllocatedDevices.of([claim()]).is_allocated(G)


def test_device_that_was_taken_without_amounts_stays_marked():
    consumed = ConsumedCapacity()
    consumed.add(G, {})
    assert G in consumed
    consumed.remove(DeviceID(DRIVER, "p", "other"), {"memory": 1})
    assert consumed.of(G) == {}
