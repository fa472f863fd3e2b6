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


def counters_in_use(*names):
    devices_in_use = AllocatedDevices()
    devices_in_use.add(allocation(*({"device": name, "driver": "d"} for name in names)))
    return ConsumedCounters(AvailableCounters(devices_in_use))


def test_devices_share_the_counters_of_their_pool():
    pool, devices = a_pool()
    counters = counters_in_use()
    assert counters.charge(devices["half"], pool)
    assert not counters.charge(devices["most"], pool)
    counters.give_back(devices["half"], pool)
    assert counters.charge(devices["whole"], pool)


def test_refused_charge_leaves_nothing_behind():
    pool, devices = a_pool()
    counters = counters_in_use()
    assert counters.charge(devices["half"], pool)
    assert not counters.charge(devices["whole"], pool)
    assert counters.charge(devices["half"], pool)


def test_allocated_devices_consume_too():
    pool, devices = a_pool()
    assert not counters_in_use("half").charge(devices["most"], pool)
    assert counters_in_use("half").charge(devices["half"], pool)
    assert not counters_in_use("half", "most").charge(devices["half"], pool)


def test_pools_of_two_drivers_with_one_name_have_their_own_counters():
    (pool, devices), (second_pool, second_devices) = a_pool("d"), a_pool("e")
    counters = counters_in_use()
    assert counters.charge(devices["most"], pool)
    assert counters.charge(second_devices["whole"], second_pool)
    assert not counters.charge(second_devices["half"], second_pool)
