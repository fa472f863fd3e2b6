from podium.devices import AllocatedDevices, Inventory
from podium.devices.counters import AvailableCounters, ConsumedCounters
from podium.devices.pools import pools_of_node
from tests.unit.devices.cluster import a_slice, allocation, device

SET = [{"name": "set", "counters": {"memory": {"value": "8"}}}]


def part(name, amount):
    return device(name, consumesCounters=[{"counterSet": "set", "counters": {"memory": {"value": amount}}}])


def a_pool(driver="d"):
    slices = [
        a_slice("1", driver=driver, slices=2, sharedCounters=SET),
        a_slice("2", part("half", "4"), part("whole", "8"), part("most", "5"), driver=driver, slices=2),
    ]
    (pool,) = pools_of_node(Inventory(slices), "n1", {}).pools
    return pool, dict(zip(("half", "whole", "most"), pool.devices, strict=True))


def consumed(*held):
    allocated = AllocatedDevices()
    allocated.add(allocation(*({"device": each, "driver": "d"} for each in held)))
    return ConsumedCounters(AvailableCounters(allocated))


def test_devices_share_the_counters_of_their_pool():
    pool, devices = a_pool()
    counters = consumed()
    assert counters.charge(devices["half"], pool)
    assert not counters.charge(devices["most"], pool)
    counters.give_back(devices["half"], pool)
    assert counters.charge(devices["whole"], pool)


def test_refused_charge_leaves_nothing_behind():
    pool, devices = a_pool()
    counters = consumed()
    assert counters.charge(devices["half"], pool)
    assert not counters.charge(devices["whole"], pool)
    assert counters.charge(devices["half"], pool)


def test_allocated_devices_consume_too():
    pool, devices = a_pool()
    assert not consumed("half").charge(devices["most"], pool)
    assert consumed("half").charge(devices["half"], pool)
    assert not consumed("half", "most").charge(devices["half"], pool)


def test_pools_of_two_drivers_with_one_name_have_their_own_counters():
    (one, devices), (other, others) = a_pool("d"), a_pool("e")
    counters = consumed()
    assert counters.charge(devices["most"], one)
    assert counters.charge(others["whole"], other)
    assert not counters.charge(others["half"], other)
