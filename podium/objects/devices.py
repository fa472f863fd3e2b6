"""Devices, the slices that list them, and their classes: `resource.k8s.io/v1`, cut down to what scheduling reads.

A device stands in a ResourceSlice; names without a domain belong to the domain of the slice's driver.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from podium.objects.affinity import NodeSelector
from podium.objects.core import Taint
from podium.objects.meta import ClusterObject, Int64, RawQuantity, Value

# ---------------------------------------------------------------- devices


class DeviceAttribute(Value, frozen=True):
    """The value of an attribute, or its values: one of them is set. `version` is a semantic version."""

    int_value: int | None = field(name="int", default=None)
    bool_value: bool | None = field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Value, frozen=True):
    """The amounts that may be consumed: `min`, and from there in steps up to `max`."""

    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(Value, frozen=True):
    """The amount of a capacity that is consumed by default, and the amounts to which requests are rounded up."""

    default: RawQuantity | None = None
    valid_values: tuple[RawQuantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Value, frozen=True):
    """The amount of one capacity that a device has."""

    value: RawQuantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Value, frozen=True):
    """An amount of a shared counter: in total, or consumed by one device."""

    value: RawQuantity = "0"


class CounterSet(Value, frozen=True):
    """Counters that several devices of a pool share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Value, frozen=True):
    """The amounts that a device consumes of a counter set. `compatibility_groups` are of an alpha gate."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class Device(Value, frozen=True):
    """A device. Its own node selection counts only in a slice with `per_device_node_selection`."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


# ---------------------------------------------------------------- slices


class ResourcePool(Value, frozen=True):
    """The pool that a slice belongs to, and how many slices its current generation has."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Value, frozen=True):
    """Devices of a pool or counters that they share, and the nodes that can reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ClusterObject, frozen=True):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


# ---------------------------------------------------------------- rules that taint devices


class DeviceTaintSelector(Value, frozen=True):
    """The devices that a rule taints: those that match every field that is set."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Value, frozen=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(ClusterObject, frozen=True):
    """A taint for devices. v1 and v1beta2 of `resource.k8s.io` have the same fields."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# ---------------------------------------------------------------- classes


class CELDeviceSelector(Value, frozen=True):
    """An expression over a device; see `podium.cel`."""

    expression: str = ""


class DeviceSelector(Value, frozen=True):
    """Selects devices."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Value, frozen=True):
    """Parameters that only the driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Value, frozen=True):
    """Configuration for the devices of a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Value, frozen=True):
    """The selectors that devices of the class match, their configuration, and their extended resource."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ClusterObject, frozen=True):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()
