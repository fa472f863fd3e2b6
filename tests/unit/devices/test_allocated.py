from podium.devices import AllocatedDevices, DeviceID
from podium.devices.allocated import ConsumedCapacity
from tests.unit.devices.cluster import DRIVER, allocation

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


def test_device_that_two_claims_hold_is_free_when_both_have_gone():
    allocated = AllocatedDevices()
    for _ in range(2):
        allocated.add(allocation({"device": "g"}))
    for is_held in (True, False, False):
        allocated.remove(allocation({"device": "g"}))
        assert allocated.is_allocated(G) is is_held


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


def test_what_others_hold_counts_as_well():
    base = AllocatedDevices()
    own = AllocatedDevices(base)
    base.add(allocation({"device": "g"}, share("a", memory="1Gi") | {"device": "h"}))
    own.add(allocation(share("b", memory="2Gi") | {"device": "h"}))
    h = DeviceID(DRIVER, "p", "h")
    assert own.is_dedicated(G)
    assert own.is_allocated(h)
    assert h in own.consumed
    assert own.consumed.of(h) == {"memory": 3 * GI}
    assert base.consumed.of(h) == {"memory": GI}


def test_share_with_an_amount_that_cannot_be_parsed_counts_as_the_whole_device():
    allocated = AllocatedDevices()
    allocated.add(allocation(share("a", memory="much", cores="2")))
    assert allocated.is_dedicated(G)
    allocated.remove(allocation(share("a", memory="much", cores="2")))
    assert not allocated.is_allocated(G)


def test_part_that_cannot_be_read_stands_for_any():
    base = AllocatedDevices()
    allocated = AllocatedDevices(base)
    any_of_driver, any_of_pool = {"pool": "", "device": ""}, {"device": ""}
    other_pool, other_driver = DeviceID(DRIVER, "q", "g"), DeviceID("other", "p", "g")
    for results, expected in (
        ([any_of_pool], (True, False, False)),
        ([any_of_driver], (True, True, False)),
        ([{"driver": "", "pool": "", "device": ""}], (True, True, True)),
    ):
        before = allocated.version([("other", "p")]), allocated.version([(DRIVER, "p")])
        base.add(allocation(*results))
        base.add(allocation(*results))
        after = allocated.version([("other", "p")]), allocated.version([(DRIVER, "p")])
        assert (after[0] > before[0], after[1] > before[1]) == (expected[1], True)
        base.remove(allocation(*results))
        for holds in (allocated.is_dedicated, allocated.is_allocated, base.is_dedicated, base.is_allocated):
            assert (holds(G), holds(other_pool), holds(other_driver)) == expected
        base.remove(allocation(*results))
        assert not base.is_allocated(G)


def test_device_that_was_taken_without_amounts_stays_marked():
    consumed = ConsumedCapacity()
    consumed.add(G, {})
    assert G in consumed
    consumed.remove(DeviceID(DRIVER, "p", "other"), {"memory": 1})
    assert consumed.of(G) == {}
