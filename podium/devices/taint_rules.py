"""Taints that DeviceTaintRules add to devices, as if the slices had them.

Owns the rules. Never evicts anybody: that is the part of the controller manager.

Source: staging dynamic-resource-allocation/resourceslice/tracker/tracker.go, v1.36.2. As there, a rule without a
selector taints all devices, though the API's documentation says none.
"""

from __future__ import annotations

from msgspec.structs import replace

from podium.objects.core import Taint
from podium.objects.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice


class TaintRules:
    """The rules of a cluster, by name."""

    def __init__(self) -> None:
        self._rules: dict[str, DeviceTaintRule] = {}

    def put(self, rule: DeviceTaintRule) -> None:
        """A rule is there, or has changed."""
        self._rules[rule.key] = rule

    def remove(self, rule: DeviceTaintRule) -> None:
        """A rule is gone."""
        self._rules.pop(rule.key, None)

    def applied(self, item: ResourceSlice) -> ResourceSlice:
        """The slice with the taints that rules add to its devices."""
        rules = [each for each in self._rules.values() if reaches(each, item)]
        if not rules:
            return item
        return replace(
            item, spec=replace(item.spec, devices=tuple(_tainted(each, rules) for each in item.spec.devices))
        )


def reaches(rule: DeviceTaintRule, item: ResourceSlice) -> bool:
    """Whether the rule may taint a device of the slice, by the slice's driver and pool."""
    selector, spec = _selector_of(rule), item.spec
    return selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)


def _tainted(device: Device, rules: list[DeviceTaintRule]) -> Device:
    added: list[Taint] = [each.spec.taint for each in rules if _selector_of(each).device in (None, device.name)]
    return replace(device, taints=(*device.taints, *added)) if added else device


def _selector_of(rule: DeviceTaintRule) -> DeviceTaintSelector:
    return rule.spec.device_selector or DeviceTaintSelector()
