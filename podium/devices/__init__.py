"""Allocating devices to resource claims, as kube-scheduler's allocator does.

Pure values and decisions: which pools of devices a node can reach (`pools`, from an `inventory` of the slices), which
devices are in use (`allocated`), and the search for devices for a pod's claims (`allocator`). Never does I/O, never
reads a clock: a search ends after a number of steps.
"""

from podium.devices.allocated import AllocatedDevices
from podium.devices.allocator import Allocator, Refusal
from podium.devices.errors import AllocationError, BrokenPoolError, StepsExceededError
from podium.devices.inventory import DeviceID, Inventory

__all__ = [
    "AllocatedDevices",
    "AllocationError",
    "Allocator",
    "BrokenPoolError",
    "DeviceID",
    "Inventory",
    "Refusal",
    "StepsExceededError",
]
