"""Checks that an allocated claim can be used: on a node, and with its devices bound.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go, v1.36.2.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Final

from podium.objects.claims import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from podium.objects.times import parse_time

_TRUE: Final = "True"


class Binding(enum.Enum):
    """The state of a claim's devices that have binding conditions."""

    READY = enum.auto()
    PENDING = enum.auto()
    FAILED = enum.auto()


def binding_of(claim: ResourceClaim) -> Binding:
    """Return the state of the claim's devices. The first device that is not ready decides."""
    devices = {
        (device_status.driver, device_status.pool, device_status.device): device_status
        for device_status in claim.status.devices
    }
    for result in _results(claim):
        if result.binding_conditions:
            state = _state(result, devices.get((result.driver, result.pool, result.device)))
            if state is not Binding.READY:
                return state
    return Binding.READY


def failure_of(claim: ResourceClaim) -> str:
    """Return why the first failed device failed, in words for users; "" if none failed."""
    devices = {
        (device_status.driver, device_status.pool, device_status.device): device_status
        for device_status in claim.status.devices
    }
    for result in _results(claim):
        status = devices.get((result.driver, result.pool, result.device))
        if not result.binding_conditions or status is None:
            continue
        for condition in status.conditions:
            if condition.type in result.binding_failure_conditions and condition.status == _TRUE:
                message = json.dumps(condition.message, ensure_ascii=False)
                return (
                    f"device binding failed: claim={claim.metadata.name}, reason={condition.reason}, message={message}"
                )
    return ""


def has_timed_out(claim: ResourceClaim, now_s: float, timeout_s: float) -> bool:
    """Return True if the timeout for the binding conditions of the claim's devices has passed."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if not any(result.binding_conditions for result in _results(claim)):
        return False
    return parse_time(allocation.allocation_timestamp) + timeout_s < now_s


def is_bound_or_may_be(claim: ResourceClaim, now_s: float, timeout_s: float) -> bool:
    """Return True if the claim's devices are ready, or still have time to become so."""
    state = binding_of(claim)
    return state is Binding.READY or (state is Binding.PENDING and not has_timed_out(claim, now_s, timeout_s))


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    return () if claim.status.allocation is None else claim.status.allocation.devices.results


def _state(result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus | None) -> Binding:
    if status is None:
        return Binding.PENDING
    conditions: Mapping[str, str] = {condition.type: condition.status for condition in reversed(status.conditions)}
    if any(conditions.get(name) == _TRUE for name in result.binding_failure_conditions):
        return Binding.FAILED
    is_ready = all(conditions.get(name) == _TRUE for name in result.binding_conditions)
    return Binding.READY if is_ready else Binding.PENDING
