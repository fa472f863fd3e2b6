from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.devices import Inventory
from podium.devices.taint_rules import TaintRules
from podium.objects.devices import DeviceTaintRule
from tests.unit.devices.cluster import DRIVER, a_slice, device

TAINT = {"key": "broken", "value": "yes", "effect": "NoExecute"}


def a_rule(name: str = "r", taint: Any = TAINT, **selector: str) -> DeviceTaintRule:
    """A rule for the devices that the selector selects; an empty one selects all."""
    spec = {"taint": taint, "deviceSelector": selector}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule)


def keys(item: Any) -> list[list[str]]:
    return [[taint.key for taint in entry.taints] for entry in item.spec.devices]


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({}, [["broken"], ["broken"]]),
        ({"driver": DRIVER}, [["broken"], ["broken"]]),
        ({"driver": "other"}, [[], []]),
        ({"pool": "p"}, [["broken"], ["broken"]]),
        ({"pool": "q"}, [[], []]),
        ({"device": "g1"}, [[], ["broken"]]),
        ({"driver": DRIVER, "pool": "p", "device": "g0"}, [["broken"], []]),
        ({"driver": "other", "device": "g0"}, [[], []]),
    ],
    ids=str,
)
def test_a_rule_taints_the_devices_that_match_all_it_names(selector: dict[str, str], tainted: list[list[str]]) -> None:
    rules = TaintRules()
    rules.put(a_rule(**selector))
    assert keys(rules.apply_to(a_slice("s", "g0", "g1"))) == tainted


@pytest.mark.parametrize(("is_selective", "tainted"), [(True, [[], []]), (False, [["broken"], ["broken"]])])
def test_a_rule_without_a_selector_taints_no_device_in_newer_minors(
    is_selective: bool, tainted: list[list[str]]
) -> None:
    rules = TaintRules(is_selective=is_selective)
    rule = msgspec.convert({"metadata": {"name": "r"}, "spec": {"taint": TAINT}}, DeviceTaintRule)
    rules.put(rule)
    assert keys(rules.apply_to(a_slice("s", "g0", "g1"))) == tainted
    assert rules.change_taints(None, rule, [a_slice("s", "g0")]) is not is_selective


@pytest.mark.parametrize(
    ("old", "new", "is_changed"),
    [
        (None, a_rule(device="g1"), True),
        (a_rule(device="g1"), None, True),
        (None, a_rule(device="h"), False),
        (None, a_rule(driver="other"), False),
        (a_rule(device="g0"), a_rule(device="g1"), True),
        (a_rule(device="g0"), a_rule(device="g0", pool="p"), False),
        (a_rule(), a_rule(taint={**TAINT, "effect": "NoSchedule"}), True),
        (None, None, False),
    ],
)
def test_a_change_of_a_rule_may_change_the_taints_of_devices(
    old: DeviceTaintRule | None, new: DeviceTaintRule | None, is_changed: bool
) -> None:
    assert TaintRules().change_taints(old, new, [a_slice("s", "g0", "g1")]) is is_changed


def test_taints_are_added_to_those_of_the_slice_and_go_with_their_rule() -> None:
    rules, item = TaintRules(), a_slice("s", device("g0", taints=[{"key": "own", "effect": "NoSchedule"}]))
    assert rules.apply_to(item) is item
    rules.put(a_rule("a"))
    rules.put(a_rule("b", {"key": "hot", "effect": "NoSchedule"}))
    assert keys(rules.apply_to(item)) == [["own", "broken", "hot"]]
    rules.put(a_rule("a", {"key": "cold", "effect": "NoSchedule"}))
    assert keys(rules.apply_to(item)) == [["own", "cold", "hot"]]
    rules.remove(a_rule("a"))
    rules.remove(a_rule("b"))
    assert rules.apply_to(item) is item


def test_only_slices_that_a_change_of_a_rule_concerns_are_read_again() -> None:
    inventory = Inventory([a_slice("s", "g0"), a_slice("t", "h0", pool="q", nodeName="n2")])
    inventory.derived.update(n1="derived", n2="derived")
    first, second = inventory.candidates("n1"), inventory.candidates("n2")
    rule = a_rule(pool="p")
    inventory.change_taint_rule(None, rule)
    assert inventory.derived == {"n2": "derived"}
    assert [entry.key for entry in inventory.candidates("n1")[0].devices[0].device.taints] == ["broken"]
    assert inventory.candidates("n2")[0] is second[0]
    tainted = inventory.candidates("n1")[0]
    inventory.change_taint_rule(rule, msgspec.structs.replace(rule))
    assert inventory.candidates("n1")[0] is tainted
    inventory.change_taint_rule(rule, a_rule(pool="q"))
    assert inventory.candidates("n1")[0].devices[0].device == first[0].devices[0].device
    assert len(inventory.candidates("n2")[0].devices[0].device.taints) == 1
    inventory.change_taint_rule(a_rule(pool="q"), None)
    assert inventory.candidates("n2")[0].devices[0].device.taints == ()
