from podium.devices import AllocatedDevices, DeviceID
from podium.devices.allocated import ConsumedCapacity
from tests.unit.devices.cluster import DRIVER, allocation

G = DeviceID(DRIVER, "p", "g")
GI = 2**30 * 10**9


def share(uid, **capacity):
    return {"device": "g", "shareID": uid, "consumedCapacity": capacity}


def test_device_is_held_until_the_allocation_goes():
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation({"device": "g"}))
    assert devices_in_use.is_dedicated(G)
    assert devices_in_use.is_allocated(G)
    devices_in_use.remove(allocation({"device": "g"}))
    assert not devices_in_use.is_allocated(G)


def test_device_that_two_claims_hold_is_free_when_both_have_gone():
    devices_in_use = AllocatedDevices()
    for _ in range(2):
        devices_in_use.add(allocation({"device": "g"}))
    for is_held in (True, False, False):
        devices_in_use.remove(allocation({"device": "g"}))
        assert devices_in_use.is_allocated(G) is is_held


def test_a_device_that_is_handed_over_is_neither_allocated_nor_released():
    base = AllocatedDevices()
    devices_in_use = AllocatedDevices(base)
    devices_in_use.add(allocation({"device": "g"}))
    version, changes = devices_in_use.version([(DRIVER, "p")]), devices_in_use.changes.end
    base.add(allocation({"device": "g"}))
    devices_in_use.remove(allocation({"device": "g"}))
    assert (devices_in_use.version([(DRIVER, "p")]), devices_in_use.changes.end) == (version, changes)
    base.remove(allocation({"device": "g"}))
    assert devices_in_use.version([(DRIVER, "p")]) > version
    assert list(devices_in_use.changes.since(changes)) == [(DRIVER, "p")]


def test_administrators_access_does_not_count():
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation({"device": "g", "adminAccess": True}))
    assert not devices_in_use.is_allocated(G)


def test_shares_add_up():
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation(share("a", memory="1Gi")))
    devices_in_use.add(allocation(share("b", memory="2Gi")))
    assert (devices_in_use.is_dedicated(G), devices_in_use.is_allocated(G)) == (False, True)
    assert devices_in_use.consumed.of(G) == {"memory": 3 * GI}
    devices_in_use.remove(allocation(share("a", memory="1Gi")))
    devices_in_use.remove(allocation(share("b", memory="2Gi")))
    assert not devices_in_use.is_allocated(G)
    assert G not in devices_in_use.consumed


def test_share_without_capacity_holds_the_device_but_no_capacity():
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation(share("a")))
    assert devices_in_use.is_allocated(G)
    assert G not in devices_in_use.consumed


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
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation(share("a", memory="much", cores="2")))
    assert devices_in_use.is_dedicated(G)
    devices_in_use.remove(allocation(share("a", memory="much", cores="2")))
    assert not devices_in_use.is_allocated(G)


def test_part_that_cannot_be_read_stands_for_any():
    base = AllocatedDevices()
    devices_in_use = AllocatedDevices(base)
    any_of_driver, any_of_pool = {"pool": "", "device": ""}, {"device": ""}
    other_pool, other_driver = DeviceID(DRIVER, "q", "g"), DeviceID("other", "p", "g")
    for results, is_known in (
        ([any_of_pool], (True, False, False)),
        ([any_of_driver], (True, True, False)),
        ([{"driver": "", "pool": "", "device": ""}], (True, True, True)),
    ):
        versions = devices_in_use.version([("other", "p")]), devices_in_use.version([(DRIVER, "p")])
        base.add(allocation(*results))
        base.add(allocation(*results))
        later_versions = devices_in_use.version([("other", "p")]), devices_in_use.version([(DRIVER, "p")])
        assert (later_versions[0] > versions[0], later_versions[1] > versions[1]) == (is_known[1], True)
        base.remove(allocation(*results))
        for holds in (devices_in_use.is_dedicated, devices_in_use.is_allocated, base.is_dedicated, base.is_allocated):
            assert (holds(G), holds(other_pool), holds(other_driver)) == is_known
        base.remove(allocation(*results))
        assert not base.is_allocated(G)


def test_device_that_was_taken_without_amounts_stays_marked():
    capacity = ConsumedCapacity()
    capacity.add(G, {})
    assert G in capacity
    capacity.remove(DeviceID(DRIVER, "p", "other"), {"memory": 1})
    assert capacity.of(G) == {}
