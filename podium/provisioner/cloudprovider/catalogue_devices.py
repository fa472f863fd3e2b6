"""The devices for resource claims of an instance type, as a catalogue lists them by driver.

Owns the forms, and that what they say agrees with itself:

    {"gpu.example.com": [{"name": "gpu-0", "attributes": {"model": {"string": "h100"}}}]}
    {"gpu.example.com": {"devices": [...], "sharedCounters": [...]}}
    {"gpu.example.com": {"count": 8, "attributes": {"model": "h100"}, "capacity": {"memory": "80Gi"}}}

The first two are the form of a ResourceSlice. In the third, which stands for so many devices that are alike, attributes
and capacities may be plain values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from podium.cel.errors import EvaluationError
from podium.cel.libraries.versions import parse as parse_version
from podium.objects.devices import CounterSet, Device, DeviceAttribute
from podium.objects.errors import FieldError, field_and_detail
from podium.objects.meta import RawQuantity
from podium.objects.names import name_error
from podium.objects.quantity import QuantityError, milli_value

COUNT_MAX: Final = 128
"""How many devices one slice may list."""
_ALIKE: Final = frozenset({"count", "attributes", "capacity", "taints", "allowMultipleAllocations"})
_ANY_UID: Final = "any"
_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_IN_SLICE: Final = frozenset({"devices", "sharedCounters"})
_ON_NODE: Final = ("node_name", "node_selector", "all_nodes")
"""The fields of a device by which a slice says on which nodes it is."""

T = TypeVar("T")
_Devices = dict[str, tuple[Device, ...]]
_Counters = dict[str, tuple[CounterSet, ...]]


def read_devices(content: Mapping[str, Any], path: str) -> tuple[_Devices, _Counters]:
    """Return by driver the devices, and the counters that they share.

    Args:
        path: of the field, for errors.

    Raises:
        FieldError: a field cannot be read, or contradicts another.
    """
    devices: _Devices = {}
    counters: _Counters = {}
    for driver, of_driver in content.items():
        where = f"{path}[{driver}]"
        # As drivers and devices are named in a ResourceSlice: what no driver publishes would never be allocated.
        if name_error(driver, "", _ANY_UID, is_namespaced=False):
            raise FieldError(where, "is not the name of a driver, such as gpu.example.com")
        raw_devices, raw_counters, base = _lists(of_driver, where)
        _refuse_former_form(raw_devices, base)
        devices[driver] = _convert(raw_devices, list[Device], base)
        counters[driver] = _convert(raw_counters, list[CounterSet], f"{where}.sharedCounters")
        _check(devices[driver], counters[driver], base, f"{where}.sharedCounters")
    return devices, {driver: sets for driver, sets in counters.items() if sets}


def _lists(content: object, path: str) -> tuple[object, object, str]:
    """Return the list of devices, that of counters, and the path of the former."""
    if isinstance(content, list):
        return content, [], path
    if not isinstance(content, dict):
        raise FieldError(path, "is neither a list of devices nor an object with their count")
    if "devices" in content:
        _refuse_others(content, _IN_SLICE, path)
        return content["devices"], content.get("sharedCounters") or [], f"{path}.devices"
    _refuse_others(content, _ALIKE, path)
    # A bool is an int in Python, and no number of devices.
    count = content.get("count")
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MAX:
        raise FieldError(f"{path}.count", f"{count!r} is not a number of devices, at most {COUNT_MAX}")
    like = {name: value for name, value in content.items() if name != "count"}
    for name, form in (("attributes", _attribute), ("capacity", _capacity)):
        if name in like:
            if not isinstance(like[name], dict):
                raise FieldError(f"{path}.{name}", "is not an object with named fields")
            like[name] = {key: form(value) for key, value in like[name].items()}
    return [{"name": f"device-{index}", **like} for index in range(count)], [], path


def _refuse_former_form(devices: object, path: str) -> None:
    """Refuse devices in the form of v1beta1, whose attributes would be lost."""
    for index, device in enumerate(devices if isinstance(devices, list) else ()):
        if isinstance(device, dict) and "basic" in device:
            raise FieldError(f"{path}[{index}].basic", "is of resource.k8s.io/v1beta1: put its fields beside the name")


def _refuse_others(content: Mapping[str, Any], names: frozenset[str], path: str) -> None:
    for name in content.keys() - names:
        raise FieldError(f"{path}.{name}", f"is not one of {', '.join(sorted(names))}")


def _attribute(value: object) -> object:
    kinds = {bool: "bool", int: "int", str: "string"}
    return {kinds[type(value)]: value} if type(value) in kinds else value


def _capacity(value: object) -> object:
    return value if isinstance(value, dict) else {"value": value}


def _convert(content: object, kind: type[list[T]], path: str) -> tuple[T, ...]:
    try:
        return tuple(msgspec.convert(content, kind))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        field_path, detail = field_and_detail(str(error))
        raise FieldError(f"{path}{field_path}", detail) from error


# ---------------------------------------------------------------- what agrees


def _check(devices: Sequence[Device], counters: Sequence[CounterSet], path: str, counters_path: str) -> None:
    amounts = _counter_amounts(counters, counters_path)
    names: set[str] = set()
    for index, device in enumerate(devices):
        where = f"{path}[{index}]"
        if not device.name:
            raise FieldError(f"{where}.name", "is missing")
        if name_error("x", device.name, _ANY_UID, is_namespaced=True):
            raise FieldError(f"{where}.name", "is not the name of a device, such as gpu-0")
        if device.name in names:
            raise FieldError(f"{where}.name", f'"{device.name}" is there twice')
        names.add(device.name)
        if any(getattr(device, field) for field in _ON_NODE):
            raise FieldError(where, "names nodes, and a device of an instance type is on its own node")
        _check_values(device, where)
        _check_counters(device, amounts, where)


def _counter_amounts(counters: Sequence[CounterSet], path: str) -> dict[tuple[str, str], int]:
    """Return the amount of each counter, by the names of its set and its own."""
    amounts: dict[tuple[str, str], int] = {}
    names: set[str] = set()
    for index, counter_set in enumerate(counters):
        if not counter_set.name:
            raise FieldError(f"{path}[{index}].name", "is missing")
        if counter_set.name in names:
            raise FieldError(f"{path}[{index}].name", f'"{counter_set.name}" is there twice')
        names.add(counter_set.name)
        for name, counter in counter_set.counters.items():
            amounts[counter_set.name, name] = _amount(counter.value, f"{path}[{index}].counters[{name}].value")
    return amounts


def _check_counters(device: Device, amounts: Mapping[tuple[str, str], int], path: str) -> None:
    names: set[str] = set()
    for number, consumption in enumerate(device.consumes_counters):
        if consumption.counter_set in names:
            raise FieldError(
                f"{path}.consumesCounters[{number}].counterSet", f'"{consumption.counter_set}" is there twice'
            )
        names.add(consumption.counter_set)
        for name, counter in consumption.counters.items():
            where = f"{path}.consumesCounters[{number}].counters[{name}]"
            total = amounts.get((consumption.counter_set, name))
            if total is None:
                raise FieldError(where, f'the shared counters "{consumption.counter_set}" have no "{name}"')
            if _amount(counter.value, where) > total:
                raise FieldError(where, f"{counter.value} is more than the shared counter has")


def _check_values(device: Device, path: str) -> None:
    for number, taint in enumerate(device.taints):
        if taint.effect not in _EFFECTS:
            raise FieldError(f"{path}.taints[{number}].effect", f"{taint.effect!r} is not one of {', '.join(_EFFECTS)}")
    for field in ("attributes", "capacity"):
        if "" in (getattr(device, field) or {}):
            raise FieldError(f"{path}.{field}", "has a name that is empty")
    for name, attribute in (device.attributes or {}).items():
        values = [field for field in DeviceAttribute.__struct_fields__ if getattr(attribute, field) is not None]
        if len(values) != 1:
            raise FieldError(f"{path}.attributes[{name}]", "has not exactly one of bool, int, string and version")
        whole_number, version = attribute.int_value, attribute.version
        if whole_number is not None and not -(2**63) <= whole_number < 2**63:
            raise FieldError(f"{path}.attributes[{name}].int", "does not fit into 64 bits")
        if version is not None:
            _check_version(version, f"{path}.attributes[{name}].version")
    for name, capacity in (device.capacity or {}).items():
        _amount(capacity.value, f"{path}.capacity[{name}].value")


def _check_version(text: str, path: str) -> None:
    try:
        parse_version(text)
    except EvaluationError as error:
        raise FieldError(path, f"{text!r} is not a semantic version: {error}") from error


def _amount(quantity: RawQuantity, path: str) -> int:
    try:
        amount = milli_value(quantity)
    except QuantityError as error:
        raise FieldError(path, str(error)) from error
    if amount < 0:
        raise FieldError(path, f"{quantity} is less than 0")
    return amount
