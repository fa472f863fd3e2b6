"""What plugins are lent where there is no API server: questions are decided, nothing is carried out.

Owns the stand-ins of `podium.framework.contract.interface` that refuse, know of no pod, or stay silent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from podium.cluster import Snapshot
from podium.framework.contract.interface import ApiClient, Lister, Nominator, Preemptions, WaitingPod, WaitingPods
from podium.lib.clock import Clock
from podium.lib.error_words import Worded
from podium.objects.core import Pod
from podium.objects.resource_types import ObjectT, ResourceType


class WriteRefusedError(Worded):
    """A plugin wants to write, and there is no API server to write to."""


class RefusingClient:
    """Implements `podium.framework.contract.interface.ApiClient`: there is nothing to write to."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Refuse."""
        raise WriteRefusedError(f"there is no API server to bind {pod.key} to {node_name}")

    async def patch(self, resource: ResourceType[ObjectT], item: ObjectT, change: Mapping[str, Any]) -> ObjectT:
        """Refuse."""
        del change
        raise WriteRefusedError(f"there is no API server to patch {resource.kind} {item.key}")


class NoPreemptions:
    """Implements `podium.framework.contract.interface.Preemptions`: nobody makes room."""

    def attempted(self) -> None:
        """Let it pass."""

    def is_preempting(self, uid: str) -> bool:
        """Nobody."""
        del uid
        return False

    def held_back_from(self, pod: Pod) -> Collection[str]:
        """From no node."""
        del pod
        return ()

    def spares(self, victim: Pod) -> bool:
        """Nobody."""
        del victim
        return False


class NoWaitingPods:
    """Implements `podium.framework.contract.interface.WaitingPods`: no pod is ever bound, so none waits at Permit."""

    def get(self, uid: str) -> None:
        """None."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """None."""
        return iter(())


class SilentObserver:
    """Implements `podium.framework.profile.runtime.Observer`: nobody measures."""

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Let it pass."""

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """Let it pass."""

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """Let it pass: the attempt fails with its words."""

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        """Let it pass."""


@dataclass
class OfflineHandle:
    """Implements `podium.framework.contract.interface.Handle`."""

    clock: Clock
    random: Random
    nominator: Nominator
    snapshot_of: Callable[[], Snapshot]
    lister_of: Callable[[ResourceType[Any]], Lister[Any]]
    waiting_pods: WaitingPods = field(default_factory=NoWaitingPods)
    client: ApiClient = field(default_factory=RefusingClient)
    preemptions: Preemptions = field(default_factory=NoPreemptions)

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""
        return self.snapshot_of()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The objects of a kind."""
        return self.lister_of(resource)

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Let it pass: there is nobody to tell."""
