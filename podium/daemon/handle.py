"""What the daemon lends to plugins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.binder import EventRecorder, WaitingPods
from podium.binder.events.event import noted
from podium.client.informer_set import InformerSet
from podium.cluster import Cache, Snapshot
from podium.framework.contract.interface import ApiClient, Lister, Preemptions
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import ObjectT, ResourceType
from podium.queues import Nominator


@dataclass(frozen=True, slots=True)
class PluginHandle:
    """Implements `podium.framework.contract.interface.Handle`."""

    clock: Clock
    random: Random
    client: ApiClient
    preemptions: Preemptions
    waiting_pods: WaitingPods
    nominator: Nominator
    recorder: EventRecorder
    cache: Cache
    informers: InformerSet

    def snapshot(self) -> Snapshot:
        """The snapshot that the current attempt decides on."""
        return self.cache.snapshot()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """The informer of that kind, which is watched from the start if a plugin has asked for it."""
        return self.informers.informer(resource)

    def record(self, pod: Pod, reason: str, note: str, *, action: str = "Scheduling", is_warning: bool = False) -> None:
        """Put an Event about the pod on its way.

        Raises:
            TypeError: names what is not a text: the Event is written by somebody else, who could not tell whose it is.
        """
        for name, value in (("reason", reason), ("note", note), ("action", action)):
            if not isinstance(value, str):
                raise TypeError(f"record: {name} is not a text, but a {type(value).__name__}")
        self.recorder.record(noted(pod, reason, note, action, is_warning=is_warning))
