"""The variable `device` of selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.cel.access import DomainMap
from podium.cel.errors import EvaluationError
from podium.cel.libraries import quantities, versions
from podium.cel.values import NativeMap
from podium.objects.devices import Device, DeviceAttribute, DeviceCapacity

_TEXT_MAX, _NAMES_MAX = 128, 200
"""The API allows less than this. For a device with more, costs are counted in every expression."""


class BoundDevice:
    """A device with parsed attributes and capacities. It is immutable and can be used with any number of selectors.

    Args:
        driver: the driver of the device's ResourceSlice.
    Raises: EvaluationError: an attribute has no value, or a version or quantity cannot be parsed.
    """

    __slots__ = ("is_small", "variables")

    def __init__(self, driver: str, device: Device) -> None:
        attributes = {name: _attribute(name, value) for name, value in (device.attributes or {}).items()}
        capacity = {name: _amount(name, value) for name, value in (device.capacity or {}).items()}
        texts = [driver, *attributes, *capacity, *(each for each in attributes.values() if isinstance(each, str))]
        self.is_small = len(texts) <= _NAMES_MAX and all(len(each) <= _TEXT_MAX for each in texts)
        self.variables: dict[str, Any] = {
            "driver": driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": _by_domain(attributes, driver),
            "capacity": _by_domain(capacity, driver),
        }


def _by_domain(values: Mapping[str, Any], driver: str) -> DomainMap:
    found = DomainMap()
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        found.setdefault(domain, NativeMap())[identifier] = value
    return found


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    try:
        return versions.parse(attribute.version)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None


def _amount(name: str, capacity: DeviceCapacity) -> quantities.Quantity:
    try:
        return quantities.parse(str(capacity.value))
    except EvaluationError as error:
        raise EvaluationError(f"capacity {name}: {error}") from None
