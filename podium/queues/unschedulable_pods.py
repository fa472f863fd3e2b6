"""Rejected and gated pods that wait for an event.

Source: kubernetes pkg/scheduler/backend/queue/unschedulable_pods.go, v1.36.2.
Differs: indexed by the plugins that rejected the pods, so that an event costs only the pods it may concern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.framework.queued_pod import QueuedPodInfo


class UnschedulablePods:
    """Pods by key, and by each of their rejector plugins.

    Invariant: the index knows each pod by the rejectors it had when it was pushed.
    """

    def __init__(self) -> None:
        self._pods: dict[str, tuple[QueuedPodInfo, frozenset[str]]] = {}
        self._by_rejector: dict[str, dict[str, QueuedPodInfo]] = {}
        self._gated: set[str] = set()

    def push(self, info: QueuedPodInfo) -> None:
        """Add the pod, or take note of its new rejectors."""
        key = info.key
        self.remove(key)
        rejectors = frozenset(info.rejector_plugins)
        self._pods[key] = info, rejectors
        for rejector in rejectors:
            self._by_rejector.setdefault(rejector, {})[key] = info
        if info.is_gated:
            self._gated.add(key)

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the pod out; None if it is not here."""
        found = self._pods.pop(key, None)
        if found is None:
            return None
        info, rejectors = found
        for rejector in rejectors:
            pods = self._by_rejector[rejector]
            del pods[key]
            if not pods:
                del self._by_rejector[rejector]
        self._gated.discard(key)
        return info

    def get(self, key: str) -> QueuedPodInfo | None:
        """The pod with that key."""
        found = self._pods.get(key)
        return found[0] if found is not None else None

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (info for info, _ in self._pods.values())

    @property
    def gated_count(self) -> int:
        """How many of the pods are gated."""
        return len(self._gated)

    def rejected_by(self, plugins: Iterable[str]) -> list[QueuedPodInfo]:
        """The pods that any of the plugins had a part in rejecting."""
        found: dict[str, QueuedPodInfo] = {}
        for plugin in plugins:
            found.update(self._by_rejector.get(plugin, ()))
        return list(found.values())
