"""Waiting until the devices of a pod are ready on its node, before the pod is bound.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PreBind, isPodReadyForBinding),
v1.36.2.
"""

from __future__ import annotations

from typing import Final

from podium.devices.availability import Binding, failure_of, has_timed_out
from podium.devices.availability import binding_of as state_of
from podium.framework.contract.interface import Handle
from podium.framework.contract.status import PluginError
from podium.objects.core import Pod
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.shared.claim_cache import ClaimCache

_POLL_S: Final = 5.0
_TIMED_OUT: Final = "device binding timeout"


async def wait_until_ready(
    handle: Handle, claims: ClaimCache, found: PodDevices, pod: Pod, node_name: str, timeout_s: float
) -> None:
    """Wait until every device that has binding conditions fulfils them. The claims are replaced by their latest state.

    Raises:
        PluginError: a device failed, or it takes too long.
    """
    if not any(has_conditions(found)):
        return
    import anyio

    note = f"waiting for binding conditions for device on node {node_name}"
    handle.record(pod, "BindingConditionsPending", note)
    deadline_s = handle.clock.monotonic() + timeout_s
    while not _are_ready(handle, claims, found, timeout_s):
        left_s = deadline_s - handle.clock.monotonic()
        if left_s <= 0:
            raise PluginError(f"{_TIMED_OUT}: context deadline exceeded")
        await anyio.sleep(min(_POLL_S, left_s))


def has_conditions(found: PodDevices) -> list[bool]:
    """For each device of the claims whether it has binding conditions."""
    return [
        bool(result.binding_conditions)
        for claim in found.claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    ]


def _are_ready(handle: Handle, claims: ClaimCache, found: PodDevices, timeout_s: float) -> bool:
    for index, known in enumerate(found.claims):
        claim = claims.get(known.key)
        if claim is None:
            raise PluginError(f'could not find ResourceClaim "{known.key}"')
        found.claims[index] = claim
        if claim.status.allocation is None:
            return False
        state = state_of(claim)
        if state is Binding.FAILED:
            raise PluginError(failure_of(claim))
        if state is Binding.PENDING:
            if has_timed_out(claim, handle.clock.now(), timeout_s):
                raise PluginError(f"{_TIMED_OUT}: claim={claim.metadata.name}")
            return False
    return True
