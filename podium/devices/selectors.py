"""Compiles device selectors with podium's quantities, and converts the API's devices to CEL values."""

from __future__ import annotations

from typing import Any, Final

from podium import cel
from podium.cel import BoundDevice, EvaluationError, Quantity, Selector, SelectorRules, parse_version
from podium.config.releases import NEWEST
from podium.objects import quantity
from podium.objects.devices import Device, DeviceAttribute, DeviceCapacity

_NO_KEY: Final = "no such key:"
_HINT: Final = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


def compile_selector(text: str, rules: SelectorRules = NEWEST.devices.selectors) -> Selector:
    """Compile a selector. Results are cached. Raises: CompileError."""
    return cel.compile_selector(text, quantity.parse, rules)


def with_hint(error: str) -> str:
    """Return the text of an evaluation's error, with the remedy if an attribute or a capacity is missing."""
    return f"{error}. {_HINT}" if _NO_KEY in error else error


def bind_device(driver: str, device: Device, rules: SelectorRules = NEWEST.devices.selectors) -> BoundDevice:
    """Convert a device, with its attributes and capacities parsed.

    Raises: EvaluationError: an attribute has no value that selectors know, or a version or quantity cannot be parsed.
    """
    return BoundDevice(
        driver,
        {name: _attribute(name, attribute, rules) for name, attribute in (device.attributes or {}).items()},
        {name: _amount(name, capacity) for name, capacity in (device.capacity or {}).items()},
        allow_multiple_allocations=bool(device.allow_multiple_allocations),
    )


def _attribute(name: str, attribute: DeviceAttribute, rules: SelectorRules) -> Any:
    try:
        if rules.has_list_attributes:
            for values in (attribute.ints, attribute.bools, attribute.strings):
                if values is not None:
                    return list(values)
            if attribute.versions is not None:
                return [parse_version(version) for version in attribute.versions]
        for value in (attribute.int_value, attribute.bool_value, attribute.string):
            if value is not None:
                return value
        if attribute.version is not None:
            return parse_version(attribute.version)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
    raise EvaluationError(f"attribute {name}: unsupported attribute value")


def _amount(name: str, capacity: DeviceCapacity) -> Quantity:
    try:
        return Quantity(quantity.parse(str(capacity.value)))
    except quantity.QuantityError as error:
        raise EvaluationError(f"capacity {name}: {error}") from None
