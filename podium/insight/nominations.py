"""Changes nominations as attempts do, and keeps those that have ended until the queue hears of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from podium.engine.placement import Placement
from podium.insight.cluster import Cluster
from podium.objects.core import Pod
from podium.objects.resource_types import PODS


class Nominations:
    """The nominations in a world that changes.

    Args:
        world: the cluster as it is whenever it is called.
    """

    def __init__(self, world: Callable[[], Cluster]) -> None:
        self._world = world
        self._ended: list[Pod] = []

    def change(self, placement: Placement) -> None:
        """Nominate the pod of an attempt as the attempt says, and end the nominations that give way to it.

        The scheduler writes a nomination into the status, and tries that node first the next time.
        """
        world, pod = self._world(), placement.pod
        if placement.node is None and (placement.nominated_node is not None or placement.loses_nomination):
            self._write(pod, placement.nominated_node or "")
        for displaced_pod in world.nominate(placement):
            self._write(world.store.get(PODS, displaced_pod.key) or displaced_pod, "")
            self._ended.append(displaced_pod)
        former_node = pod.status.nominated_node_name
        if former_node and (placement.loses_nomination or placement.nominated_node not in (None, former_node)):
            self._ended.append(pod)

    def _write(self, pod: Pod, node_name: str) -> None:
        self._world().put(PODS, replace(pod, status=replace(pod.status, nominated_node_name=node_name)))

    def take_ended(self) -> Sequence[Pod]:
        """Return the pods whose nominations have ended since the last call, as they were nominated."""
        ended_pods, self._ended = self._ended, []
        return ended_pods
