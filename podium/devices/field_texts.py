"""Texts of attributes and capacities of devices, for explanations of why a node has too few of them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from podium.devices.constraints import attribute_of, value_of
from podium.devices.inventory import SliceDevice
from podium.objects.devices import DeviceAttribute
from podium.objects.quantity import canonical_text

_VALUES_MAX: Final = 3
_NANO: Final = 10**9
_UNITS: Final = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def counts_text(counts: Counter[str]) -> str:
    """Return how many devices have which value, the most frequent ones first: `a100 on 6, l4 on 2 and 3 more`."""
    text = ", ".join(f"{value} on {count}" for value, count in counts.most_common(_VALUES_MAX))
    rest_count = len(counts) - _VALUES_MAX
    return f"{text} and {rest_count} more" if rest_count > 0 else text


def field_text(device: SliceDevice, kind: str, name: str) -> str:
    """Return the value of the device's attribute or capacity, or its driver."""
    if kind == "driver":
        return device.id.driver
    if kind == "attributes":
        attribute = attribute_of(device, name)
        return "none" if attribute is None else _attribute_text(attribute)
    capacities = device.device.capacity or {}
    domain, _, identifier = name.partition("/")
    capacity = capacities.get(name) or (capacities.get(identifier) if domain == device.id.driver else None)
    return "none" if capacity is None else canonical_text(capacity.value)


def _attribute_text(attribute: DeviceAttribute) -> str:
    value = value_of(attribute)
    if value is not None:
        return _value_text(value[1])
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    values = next((values for values in lists if values is not None), None)
    return "none" if values is None else f"[{', '.join(map(_value_text, values))}]"


def _value_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def amount_text(nano: int) -> str:
    """Return an amount in billionths as a quantity."""
    integer, fraction = divmod(nano, _NANO)
    if fraction:
        return f"{nano / _NANO:g}"
    for unit, size in _UNITS:
        if integer and integer % size == 0:
            return f"{integer // size}{unit}"
    return str(integer)
