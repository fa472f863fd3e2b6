"""The usages with which pods count on the rows of a snapshot.

Owns those that do not follow from the pod's spec alone, as of pods that are being resized or that cannot be parsed. The
others are remembered with the specs (`podium.cluster.pod_usage`), and are not kept for each pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.pod_usage import PodUsage, usual_usage
from podium.objects.core import Pod


class PodUsages:
    """The usage of each pod on each row."""

    __slots__ = ("_unusual",)

    def __init__(self) -> None:
        self._unusual: dict[tuple[int, str], PodUsage] = {}

    def of(self, row: int, pod: Pod) -> PodUsage:
        """Return the usage with which the pod was put on the row."""
        if self._unusual:
            usage = self._unusual.get((row, pod.uid))
            if usage is not None:
                return usage
        return usual_usage(pod.spec)

    def of_each(self, rows: Iterable[int], pods: Iterable[Pod]) -> list[PodUsage]:
        """Return the usage of each pod on its row."""
        if self._unusual:
            return [*map(self.of, rows, pods)]
        return [usual_usage(pod.spec) for pod in pods]

    def put(self, row: int, pod: Pod, usage: PodUsage) -> None:
        """Note the usage of a pod on the row, in place of an earlier one."""
        if not usage.follows_from_spec:
            self._unusual[row, pod.uid] = usage
        elif self._unusual:
            self._unusual.pop((row, pod.uid), None)

    def pop(self, row: int, pod: Pod) -> PodUsage:
        """Forget the usage of a pod on the row, and return it."""
        if self._unusual:
            usage = self._unusual.pop((row, pod.uid), None)
            if usage is not None:
                return usage
        return usual_usage(pod.spec)

    def copy(self) -> PodUsages:
        """Return an independent copy."""
        twin = PodUsages()
        twin._unusual = dict(self._unusual)
        return twin
