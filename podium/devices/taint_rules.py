"""Taints that DeviceTaintRules add to devices, as if the slices had them.

Owns the rules. Never evicts pods: the controller manager does.

Source: staging dynamic-resource-allocation/resourceslice/tracker/tracker.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podium.objects.core import Taint
from podium.objects.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice


class TaintRules:
    """The rules of a cluster, by name.

    Args:
        is_selective: a rule without a selector taints no device, as the API's documentation says; else it taints all.
    """

    def __init__(self, *, is_selective: bool = True) -> None:
        self._is_selective = is_selective
        self._rules: dict[str, DeviceTaintRule] = {}

    def put(self, rule: DeviceTaintRule) -> None:
        """Add a rule, or replace its older state."""
        self._rules[rule.key] = rule

    def remove(self, rule: DeviceTaintRule) -> None:
        """Remove a rule."""
        self._rules.pop(rule.key, None)

    def apply_to(self, item: ResourceSlice) -> ResourceSlice:
        """Return the slice with the taints that rules add to its devices."""
        rules = [rule for rule in self._rules.values() if self.reaches(rule, item)]
        if not rules:
            return item
        return replace(
            item, spec=replace(item.spec, devices=tuple(_with_taints(rule, rules) for rule in item.spec.devices))
        )

    def reaches(self, rule: DeviceTaintRule, item: ResourceSlice) -> bool:
        """Return True if the rule may taint a device of the slice, according to the slice's driver and pool."""
        if rule.spec.device_selector is None and self._is_selective:
            return False
        selector, spec = _selector_of(rule), item.spec
        return selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)

    def change_taints(
        self, old: DeviceTaintRule | None, new: DeviceTaintRule | None, slices: Iterable[ResourceSlice]
    ) -> bool:
        """Return True if an added, changed or deleted rule changes the taints of any device in the slices."""
        return any(
            self._taint(old, item, device) != self._taint(new, item, device)
            for item in slices
            for device in item.spec.devices
        )

    def _taint(self, rule: DeviceTaintRule | None, item: ResourceSlice, device: Device) -> Taint | None:
        """Return the taint that the rule adds to the device, if it does."""
        if rule is None or not self.reaches(rule, item) or _selector_of(rule).device not in (None, device.name):
            return None
        return rule.spec.taint


def _with_taints(device: Device, rules: list[DeviceTaintRule]) -> Device:
    taints: list[Taint] = [rule.spec.taint for rule in rules if _selector_of(rule).device in (None, device.name)]
    return replace(device, taints=(*device.taints, *taints)) if taints else device


def _selector_of(rule: DeviceTaintRule) -> DeviceTaintSelector:
    return rule.spec.device_selector or DeviceTaintSelector()
