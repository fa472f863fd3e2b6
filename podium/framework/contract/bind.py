"""The extension points after a node is chosen: Reserve, Permit, PreBind, Bind and PostBind.

Source: staging kube-scheduler/framework/interface.go, v1.36.2.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import Status
from podium.objects.core import Pod


class ReservePlugin(Plugin):
    """Reserves resources of the chosen node in the plugin's own state."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve. Any status but success makes the scheduler undo the attempt."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`. Must be harmless if nothing was reserved."""


class PermitPlugin(Plugin):
    """Lets a pod through to binding, stops it, or makes it wait."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Return success, a rejection, or Wait with the longest time to wait in seconds."""


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """A plugin's answer to whether its PreBind may run in parallel with its neighbours."""

    allow_parallel: bool = False


class PreBindPlugin(Plugin):
    """Prepares what a pod needs on its node before it is bound."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Return Skip if there is nothing to do for this pod, otherwise success."""
        return None, None

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Prepare. Any status but success makes the scheduler undo the attempt."""


class BindPlugin(Plugin):
    """Binds the pod."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Return success, an error, or Skip to leave the pod to the next bind plugin."""


class PostBindPlugin(Plugin):
    """Runs after a pod is bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """React to the binding. The pod is bound, so nothing can be undone any more."""
