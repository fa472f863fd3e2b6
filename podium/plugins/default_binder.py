"""DefaultBinder: binds the pod through the API server's binding subresource.

Runs at: Bind.
Verdict: Success, or Error in the API server's own words.
Requeue: none.
Cost: one request.
Source: kubernetes pkg/scheduler/framework/plugins/defaultbinder/default_binder.go, v1.36.2.
"""

from __future__ import annotations

from podium.framework.contract.bind import BindPlugin
from podium.framework.contract.cluster_event import EventRegistration
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.handle import Handle
from podium.framework.contract.status import PluginError, Status, error_status
from podium.objects.api_errors import ApiError
from podium.objects.core import Pod


class DefaultBinder(BindPlugin):
    """Posts the binding."""

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._client = handle.client

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Return success or Error; the cause of its error is the ApiError."""
        del state
        try:
            await self._client.bind(pod, node_name)
        except ApiError as error:
            failure = PluginError(error.message)
            failure.__cause__ = error
            return error_status(failure)
        return None

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """None: a failed binding is retried after a backoff."""
        return ()
