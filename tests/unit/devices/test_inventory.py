import pytest

from podium.cel import EvaluationError
from podium.devices.answers import Looks
from podium.devices.inventory import DeviceID, Inventory, InventorySlice, NodeSelection
from podium.devices.pools import pools_of_node
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.unit.devices.cluster import DRIVER, NEW, OLD, a_slice, device


def selector(operator="In", values=("a",)):
    requirement = NodeSelectorRequirement(key="zone", operator=operator, values=values)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(requirement,)),))


def test_name_goes_before_all_nodes_and_both_before_the_selector():
    assert not NodeSelection("n1", True, None).matches("n2", {})
    assert NodeSelection(None, True, selector()).matches("n2", {"zone": "b"})
    assert NodeSelection(None, None, selector()).matches("n2", {"zone": "a"})
    assert not NodeSelection(None, None, None).matches("n2", {})


def test_selector_that_cannot_be_parsed_is_noticed():
    assert not NodeSelection(None, None, selector("Near")).is_readable
    assert NodeSelection(None, None, selector()).is_readable


def test_slices_come_change_and_go():
    first, second = a_slice("s1"), a_slice("s1", nodeName="n2", pool="q")
    inventory = Inventory([first])
    assert [entry.item for entry in inventory.candidates("n1")] == [first]
    inventory.put(second, first)
    assert inventory.candidates("n1") == inventory.of_pool((DRIVER, "p")) == []
    assert [entry.item for entry in inventory.candidates("n2")] == [second]
    inventory.remove(second)
    assert inventory.candidates("n2") == inventory.of_pool((DRIVER, "q")) == []


def test_device_that_is_not_shared_is_its_own_dedicated_one():
    shared_device, plain = InventorySlice(
        a_slice("s", device("g", allowMultipleAllocations=True), "h"), Looks()
    ).devices
    assert plain.dedicated_device is plain
    assert shared_device.matches("device.allowMultipleAllocations")
    assert not shared_device.dedicated_device.matches("device.allowMultipleAllocations")
    assert shared_device.dedicated_device is shared_device.dedicated_device


def test_slice_with_counters_matters_to_every_node_only_in_older_minors():
    counters = a_slice("s", sharedCounters=[{"name": "set", "counters": {"memory": {"value": "1Gi"}}}])
    for release, is_known in ((OLD, True), (NEW, False)):
        assert InventorySlice(counters, Looks(), release.devices).reaches("n2", {}) is is_known
        assert InventorySlice(counters, Looks(), release.devices).reaches("n1", {})
        assert bool(Inventory([counters], release.devices).candidates("n2")) is is_known


def test_a_change_of_counters_elsewhere_is_noticed():
    slices = [
        a_slice("s", nodeName="n2", slices=2, sharedCounters=[{"name": "a", "counters": {"m": {"value": "1"}}}]),
        a_slice("t", "g", slices=2),
    ]
    inventory = Inventory(slices)
    assert not pools_of_node(inventory, "n1", {}).pools[0].is_invalid
    inventory.remove(slices[0])
    assert pools_of_node(inventory, "n1", {}).pools[0].is_incomplete


def test_slice_of_another_node_is_no_candidate():
    inventory = Inventory([a_slice("s1"), a_slice("s2", nodeName="n2"), a_slice("s3", allNodes=True)])
    assert [entry.item.metadata.name for entry in inventory.candidates("n1")] == ["s1", "s3"]
    assert len(inventory.of_pool((DRIVER, "p"))) == 3


def test_device_is_named_by_driver_and_pool_and_answers_selectors():
    (slice_device,) = InventorySlice(a_slice("s", device("g", attributes={"model": "a100"})), Looks()).devices
    assert str(slice_device.id) == str(DeviceID(DRIVER, "p", "g")) == "gpu.example.com/p/g"
    assert slice_device.matches(f'device.attributes["{DRIVER}"].model == "a100"')
    for _ in range(2):
        with pytest.raises(EvaluationError):
            slice_device.matches(f'device.attributes["{DRIVER}"].nope == "a100"')


def test_a_part_has_the_pools_of_its_nodes_and_shares_no_answers():
    shared_device = [a_slice("a", "g1", slices=2), a_slice("b", "g2", slices=2, nodeName="n2")]
    inventory = Inventory(
        [*shared_device, a_slice("c", "g3", pool="other", nodeName="n3"), a_slice("d", allNodes=True, pool="q")]
    )
    part = inventory.part_of(["n1"])
    assert {entry.item.metadata.name for pool in ("p", "q", "other") for entry in part.of_pool((DRIVER, pool))} == set(
        "abd"
    )
    (own, _), (theirs, _) = inventory.candidates("n1"), part.candidates("n1")
    assert theirs.devices[0].matches("true")
    assert own.devices[0].look is not theirs.devices[0].look
