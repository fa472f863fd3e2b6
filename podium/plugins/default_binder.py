"""DefaultBinder: binds the pod through the API server's binding subresource.

Runs at: Bind.
Verdict: Success, or Error in the API server's own words.
Requeue: none.
Cost: one request.
Source: kubernetes pkg/scheduler/framework/plugins/defaultbinder/default_binder.go, v1.36.2.
"""

from __future__ import annotations

from podium.framework import contract as fwk
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod


class DefaultBinder(fwk.BindPlugin):
    """Posts the binding."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self._client = handle.client

    async def bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Return success or Error; the cause of its error is the ApiError."""
        try:
            await self._client.bind(pod, node_name)
        except ApiError as error:
            failure = fwk.PluginError(error.message)
            failure.__cause__ = error
            return fwk.error_status(failure)
        return None

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: a failed binding is retried after a backoff."""
        return ()
