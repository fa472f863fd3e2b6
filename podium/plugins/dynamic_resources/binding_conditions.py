"""Waiting until the devices of a pod are ready on its node, before the pod is bound.

Source: kubernetes v1.36.2, pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreBind,
isPodReadyForBinding).
"""

from __future__ import annotations

from typing import Final

from podium.devices.availability import Binding, binding_of, failure_of, has_timed_out
from podium.framework import contract as fwk
from podium.objects.claims import DeviceRequestAllocationResult
from podium.objects.core import Pod
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.shared.cluster_devices import ClusterDevices
from podium.plugins.shared.device_observer import DeviceObserver

_POLL_S: Final = 5.0
_TIMED_OUT: Final = "device binding timeout"


class NotReadyError(fwk.PluginError):
    """Devices cannot be waited for any longer. `label` is the metrics' word for it."""

    def __init__(self, message: str, label: str) -> None:
        super().__init__(message)
        self.label = label


async def wait_until_ready(
    handle: fwk.Handle, devices: ClusterDevices, pod_devices: PodDevices, pod: Pod, node_name: str, timeout_s: float
) -> None:
    """Wait until every device that has binding conditions fulfils them. The claims are replaced by their latest state.

    Raises:
        NotReadyError: a device failed, or it takes too long.
    """
    if not any(result.binding_conditions for result in _results(pod_devices)):
        return
    note = f"waiting for binding conditions for device on node {node_name}"
    handle.record(pod, "BindingConditionsPending", note)
    started_s = handle.clock.monotonic()
    label = "success"
    try:
        await _wait(handle, devices, pod_devices, timeout_s, started_s + timeout_s)
    except NotReadyError as error:
        label = error.label
        raise
    finally:
        _report(devices.observer, pod_devices, pod.spec.scheduler_name, label, handle.clock.monotonic() - started_s)


async def _wait(
    handle: fwk.Handle, devices: ClusterDevices, pod_devices: PodDevices, timeout_s: float, deadline_s: float
) -> None:
    # Imported here, because callers that only decide need no event loop.
    import anyio

    while not _are_ready(handle, devices, pod_devices, timeout_s):
        left_s = deadline_s - handle.clock.monotonic()
        if left_s <= 0:
            raise NotReadyError(f"{_TIMED_OUT}: context deadline exceeded", "timeout")
        await anyio.sleep(min(_POLL_S, left_s))


def _are_ready(handle: fwk.Handle, devices: ClusterDevices, pod_devices: PodDevices, timeout_s: float) -> bool:
    for index, old_claim in enumerate(pod_devices.claims):
        claim = devices.claims.get(old_claim.key)
        if claim is None:
            raise NotReadyError(f'could not find ResourceClaim "{old_claim.key}"', "error")
        pod_devices.claims[index] = claim
        if claim.status.allocation is None:
            return False
        state = binding_of(claim)
        if state is Binding.FAILED:
            raise NotReadyError(failure_of(claim), "failed")
        if state is Binding.PENDING:
            if has_timed_out(claim, handle.clock.now(), timeout_s):
                raise NotReadyError(f"{_TIMED_OUT}: claim={claim.metadata.name}", "timeout")
            return False
    return True


def _results(pod_devices: PodDevices) -> list[DeviceRequestAllocationResult]:
    allocations = (claim.status.allocation for claim in pod_devices.claims)
    return [result for allocation in allocations if allocation is not None for result in allocation.devices.results]


def _report(observer: DeviceObserver, pod_devices: PodDevices, profile: str, label: str, seconds: float) -> None:
    for result in _results(pod_devices):
        observer.devices_waited_for(profile, result.driver, label, seconds)
        if result.binding_conditions:
            observer.device_allocated(profile, result.driver, label)
