import pytest

from podium.devices import Inventory
from podium.devices.pools import pools_of_node
from tests.unit.devices.cluster import DRIVER, NEW, OLD, a_slice, device

COUNTERS = [{"name": "set", "counters": {"memory": {"value": "8Gi"}}}]
CONSUMES = [{"counterSet": "set", "counters": {"memory": {"value": "4Gi"}}}]


def pools(*slices, node="n1", labels=None, release=NEW):
    return list(pools_of_node(Inventory(slices, release.devices), node, labels or {}).pools)


def names(result):
    return [[device.id.device for device in pool.devices] for pool in result]


def test_slices_go_by_name_and_devices_in_slice_order():
    result = pools(a_slice("b", "g3", "g2", slices=2), a_slice("a", "g1", slices=2))
    assert names(result) == [["g1", "g3", "g2"]]


def test_pools_go_by_driver_and_name_those_with_binding_conditions_last():
    conditional = device("g1", bindingConditions=["ready"])
    result = pools(
        a_slice("1", conditional, pool="a"), a_slice("2", "g2", pool="b"), a_slice("3", pool="c", driver="a")
    )
    assert [str(pool) for pool in result] == ["a/c", f"{DRIVER}/b", f"{DRIVER}/a"]


def test_only_the_highest_generation_counts():
    assert names(pools(a_slice("1", "old"), a_slice("2", "new", generation=2), a_slice("3", "old"))) == [["new"]]


def test_newer_generation_elsewhere_goes_unnoticed_if_the_pool_is_complete():
    elsewhere = a_slice("2", generation=2, nodeName="n2")
    assert names(pools(a_slice("1", "g"), elsewhere)) == [["g"]]
    assert pools(a_slice("1", "g", slices=2), elsewhere) == []


def test_pool_with_a_missing_slice_is_incomplete_and_offers_nothing():
    (result,) = pools(a_slice("1", "g", slices=2))
    assert (result.is_incomplete, result.devices) == (True, ())
    (result,) = pools(a_slice("1", "g", slices=2), a_slice("2", "h", slices=2, nodeName="n2"))
    assert (result.is_incomplete, names([result])) == (False, [["g"]])


def test_more_slices_than_announced_make_a_pool_incomplete():
    (result,) = pools(a_slice("1", "g"), a_slice("2", "h"))
    assert result.is_incomplete


@pytest.mark.parametrize(
    "slices",
    [
        [a_slice("1", "g", slices=2), a_slice("2", "g", slices=2)],
        [a_slice("1", "g", "h", "g")],
        [a_slice("1", slices=2, sharedCounters=COUNTERS), a_slice("2", slices=2, sharedCounters=COUNTERS)],
        [a_slice("1", device("g", consumesCounters=CONSUMES))],
        [
            a_slice("1", slices=3, sharedCounters=[{"name": "set", "counters": {}}]),
            a_slice("2", "h", slices=3),
            a_slice("3", device("g", consumesCounters=CONSUMES), slices=3, nodeName="n2"),
        ],
    ],
    ids=[
        "device twice",
        "device twice in a slice",
        "counter set twice",
        "no such counter set",
        "no such counter, on another node",
    ],
)
def test_contradictory_pool_is_invalid(slices):
    (result,) = pools(*slices)
    assert (result.is_invalid, result.devices) == (True, ())


def test_devices_of_other_nodes_are_kept_for_the_counters():
    shared_device = device("g", consumesCounters=CONSUMES)
    (result,) = pools(
        a_slice("1", slices=3, sharedCounters=COUNTERS),
        a_slice("2", shared_device, slices=3),
        a_slice("3", {**shared_device, "name": "h"}, slices=3, nodeName="n2"),
    )
    assert names([result]) == [["g"]]
    assert [entry.id.device for entry in result.unreachable_devices] == ["h"]
    assert result.counters == {"set": {"memory": 8 * 2**30 * 10**9}}


def test_slice_that_leaves_nodes_to_its_devices_matters_if_one_of_them_does():
    mixed = a_slice("1", device("g", nodeName="n2"), device("h", allNodes=True), perDeviceNodeSelection=True)
    assert names(pools(mixed)) == [["g", "h"]]
    assert pools(a_slice("1", device("g", nodeName="n2"), perDeviceNodeSelection=True)) == []


ODD = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Near"}]}]}


@pytest.mark.parametrize(
    "odd",
    [
        a_slice("1", "g", nodeSelector=ODD),
        a_slice("1", device("g", capacity={"memory": "much"})),
        a_slice("1", device("g", capacity={"memory": {"value": "1Gi", "requestPolicy": {"default": "much"}}})),
        a_slice("1", device("g", consumesCounters=[{"counterSet": "s", "counters": {"memory": {"value": "much"}}}])),
    ],
)
def test_slice_that_cannot_be_read_makes_its_own_pool_invalid_only(odd):
    result = pools(odd, a_slice("2", "h", pool="q"))
    assert [(pool.name, pool.is_invalid, len(pool.devices)) for pool in result] == [("p", True, 0), ("q", False, 1)]


def test_node_with_devices_of_its_own_shares_the_pools_that_all_nodes_reach():
    inventory = Inventory(
        [a_slice("1", "g"), a_slice("2", "h", pool="o", nodeName="n2"), a_slice("3", "x", pool="q", allNodes=True)]
    )
    first, second = (pools_of_node(inventory, node, {}) for node in ("n1", "n2"))
    assert [names(entry.pools) for entry in (first, second)] == [[["g"], ["x"]], [["h"], ["x"]]]
    assert first.pools[1] is second.pools[1]
    inventory.put(a_slice("3", "y", pool="q", allNodes=True), a_slice("3", pool="q", allNodes=True))
    assert names(pools_of_node(inventory, "n1", {}).pools) == [["g"], ["y"]]


def test_a_slice_may_leave_to_its_devices_which_nodes_reach_them():
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    mixed = a_slice("1", device("g", nodeName="n1"), device("h", nodeSelector=zone), perDeviceNodeSelection=True)
    assert [names(pools(mixed, node=node)) for node in ("n1", "n2")] == [[["g", "h"]], []]
    assert names(pools(mixed, node="n2", labels={"zone": "a"})) == [["g", "h"]]
    everywhere = a_slice("1", device("g", allNodes=True), perDeviceNodeSelection=True)
    assert names(pools(everywhere, node="n2")) == [["g"]]


def test_a_pool_that_has_only_counters_for_a_node_is_unknown_there_in_newer_minors():
    counters = a_slice("1", slices=2, sharedCounters=COUNTERS)
    (known,) = pools(counters, node="n2", release=OLD)
    assert known.is_incomplete
    assert pools(counters, node="n2") == []
    (known,) = pools(counters)
    assert known.is_incomplete


def test_counters_for_other_nodes_are_those_of_the_pool():
    shared_device = device("g", consumesCounters=CONSUMES)
    slices = (
        a_slice("1", slices=3, sharedCounters=COUNTERS, nodeName="n2"),
        a_slice("2", shared_device, slices=3),
        a_slice("3", {**shared_device, "name": "h"}, slices=3, nodeName="n3"),
    )
    for release in (OLD, NEW):
        (result,) = pools(*slices, release=release)
        assert names([result]) == [["g"]]
        assert [entry.id.device for entry in result.unreachable_devices] == ["h"]
        assert result.counters == {"set": {"memory": 8 * 2**30 * 10**9}}


def test_a_complete_pool_does_not_look_for_counters_elsewhere_in_newer_minors():
    slices = (
        a_slice("1", slices=1, sharedCounters=COUNTERS, nodeName="n2"),
        a_slice("2", device("g", consumesCounters=CONSUMES), slices=1),
    )
    (old_pool,), (new_pool,) = pools(*slices, release=OLD), pools(*slices)
    assert (old_pool.is_incomplete, old_pool.is_invalid) == (True, False)
    assert (new_pool.is_incomplete, new_pool.is_invalid) == (False, True)


def test_a_newer_generation_with_only_counters_elsewhere_goes_unnoticed_in_newer_minors():
    slices = (
        a_slice("1", "g"),
        a_slice("2", slices=2, generation=2, sharedCounters=COUNTERS, nodeName="n2"),
    )
    (old_pool,), (new_pool,) = pools(*slices, release=OLD), pools(*slices)
    assert old_pool.is_incomplete
    assert names([new_pool]) == [["g"]]


def test_counters_that_leave_the_nodes_to_devices_matter_to_none_in_newer_minors():
    counters = a_slice("1", slices=2, sharedCounters=COUNTERS, perDeviceNodeSelection=True)
    assert len(pools(counters, release=OLD)) == 1
    assert pools(counters) == []


def test_a_slice_with_compatibility_groups_is_as_good_as_missing_in_newer_minors():
    grouped = device("g", consumesCounters=[{**CONSUMES[0], "compatibilityGroups": ["a"]}])
    slices = (
        a_slice("1", slices=3, sharedCounters=COUNTERS),
        a_slice("2", "h", slices=3),
        a_slice("3", grouped, slices=3, nodeName="n2"),
    )
    (old_pool,), (new_pool,) = pools(*slices, release=OLD), pools(*slices)
    assert (names([old_pool]), old_pool.is_incomplete) == ([["h"]], False)
    assert (names([new_pool]), new_pool.is_incomplete) == ([[]], True)
    (elsewhere,) = pools(*slices, node="n2", release=OLD)
    assert names([elsewhere]) == [["g"]]
    assert pools(*slices, node="n2") == []
