"""The pods that wait in a plan: the largest first, and again those that did not fit, as long as any fits.

Source: karpenter pkg/controllers/provisioning/scheduling/queue.go, v1.15.0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from podium.objects.core import Pod
from podium.objects.resource_names import CPU, MEMORY
from podium.objects.times import parse_time
from podium.provisioner.scheduling.amounts import requests_of


class PodQueue:
    """Pods by cpu and memory, then by age, then by uid."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = deque(sorted(pods, key=_order))
        self._length_at_push: dict[str, int] = {}

    def pop(self) -> Pod | None:
        """Return the next pod; None if no pod waits, or if no waiting pod was planned since this one was pushed."""
        # A whole round without progress: every waiting pod was tried since this one was, and none was planned.
        if not self._pods or self._length_at_push.get(self._pods[0].uid) == len(self._pods):
            return None
        return self._pods.popleft()

    def push(self, pod: Pod) -> None:
        """Let a pod wait that did not fit."""
        self._pods.append(pod)
        self._length_at_push[pod.uid] = len(self._pods)


def created_s(pod: Pod) -> float:
    """Return the time of the pod's creation, in seconds since the epoch; 0 if it is unknown."""
    return parse_time(pod.metadata.creation_timestamp) if pod.metadata.creation_timestamp else 0.0


def _order(pod: Pod) -> tuple[int, int, float, str]:
    # First-fit decreasing: large pods open nodes, small ones fill them.
    requests = requests_of(pod)
    return -requests.get(CPU, 0), -requests.get(MEMORY, 0), created_s(pod), pod.uid
