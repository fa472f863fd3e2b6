"""Compiles device selectors with podium's quantities, and converts the API's devices to CEL values."""

from __future__ import annotations

from typing import Any

from podium import cel
from podium.cel import BoundDevice, EvaluationError, Quantity, Selector, parse_version
from podium.objects import quantity
from podium.objects.devices import Device, DeviceAttribute, DeviceCapacity


def compile_selector(text: str) -> Selector:
    """Compile a selector. Results are cached. Raises: CompileError."""
    return cel.compile_selector(text, quantity.parse)


def bind_device(driver: str, device: Device) -> BoundDevice:
    """Convert a device, with its attributes and capacities parsed.

    Raises: EvaluationError: an attribute has no value, or a version or quantity cannot be parsed.
    """
    return BoundDevice(
        driver,
        {name: _attribute(name, attribute) for name, attribute in (device.attributes or {}).items()},
        {name: _amount(name, capacity) for name, capacity in (device.capacity or {}).items()},
        allow_multiple_allocations=bool(device.allow_multiple_allocations),
    )


def _attribute(name: str, attribute: DeviceAttribute) -> Any:
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    try:
        return parse_version(attribute.version)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None


def _amount(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return Quantity(quantity.parse(str(capacity.value)))
    except quantity.QuantityError as error:
        raise EvaluationError(f"capacity {name}: {error}") from None
