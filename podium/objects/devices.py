"""Devices of `resource.k8s.io`, cut down to what selectors read.

A device stands in a ResourceSlice; names without a domain belong to the domain of the slice's driver.
"""

from __future__ import annotations

from msgspec import field

from podium.objects.core import RawQuantity, Value


class DeviceAttribute(Value, frozen=True):
    """The value of an attribute: one of them is set. `version` is a semantic version."""

    int_value: int | None = field(name="int", default=None)
    bool_value: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class DeviceCapacity(Value, frozen=True):
    """How much of something a device has."""

    value: RawQuantity = "0"


class Device(Value, frozen=True):
    """A device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    allow_multiple_allocations: bool | None = None
