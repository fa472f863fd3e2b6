"""The errors of an allocation; that nothing can be allocated is not one of them (`allocator.Refusal`)."""

from __future__ import annotations


class AllocationError(Exception):
    """The claims, classes or slices contain an error that ends the pod's attempt. The message gives the reason."""


class BrokenPoolError(AllocationError):
    """A claim asks for all devices, and the slices of a pool of the node contradict each other."""


class StepsExceededError(Exception):
    """The search for devices took more steps than it may."""


class CapacityError(Exception):
    """An amount of a device's capacity cannot be computed with. The message names the capacity and gives the reason."""
