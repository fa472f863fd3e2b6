"""Rejected and gated pods that wait for an event.

Source: kubernetes pkg/scheduler/backend/queue/unschedulable_pods.go, v1.36.2.
Differs: pods are grouped in classes that were rejected alike and that hints cannot distinguish, so that an event costs
one hint call per class that it may affect, not one per pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.objects.core import PodSpec

_ClassKey: TypeAlias = tuple[int, str, frozenset[str], frozenset[str], str, frozenset[tuple[str, str]]]

_NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class AlikePods:
    """Pods by key that share spec, namespace and rejector plugins, and labels if a rejector's hints read them.

    Invariant: never empty. Holds a reference to the spec, so that no other spec can get the same `id()`.
    """

    identity: _ClassKey
    spec: PodSpec
    gating_plugin: str
    rejectors: frozenset[str]
    pods: dict[str, QueuedPodInfo] = field(default_factory=dict)


class UnschedulablePods:
    """Unschedulable pods by key, in classes that can be looked up by rejector plugin.

    Args:
        label_readers: By profile, the plugins with a hint that reads pods' labels. May be replaced; the new value
            applies to pods pushed afterwards.

    Cost: 2 us to push a pod.
    Invariant: a pod's class is that of the spec and the rejector plugins it had when it was pushed.
    """

    def __init__(self, label_readers: Mapping[str, frozenset[str]]) -> None:
        self.label_readers = label_readers
        self._class_of: dict[str, AlikePods] = {}
        self._classes: dict[_ClassKey, AlikePods] = {}
        self._by_rejector: dict[str, dict[_ClassKey, AlikePods]] = {}
        self._gated = 0

    def push(self, info: QueuedPodInfo) -> None:
        """Add the pod, or update its object and rejector plugins."""
        key = info.key
        alike = self._class_of.get(key)
        if alike is not None and len(alike.pods) > 1 and self._stays_in(alike, info):
            # As if it had been removed: it is the last of its class, and of all, from now on.
            del alike.pods[key], self._class_of[key]
            alike.pods[key], self._class_of[key] = info, alike
            return
        self.remove(key)
        identity = self._identity(info)
        alike = self._classes.get(identity)
        if alike is None:
            alike = self._open(identity, info)
        alike.pods[key] = info
        self._class_of[key] = alike
        self._gated += alike.gating_plugin != ""

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Remove and return the pod; None if it is not unschedulable."""
        alike = self._class_of.pop(key, None)
        if alike is None:
            return None
        info = alike.pods.pop(key)
        self._gated -= alike.gating_plugin != ""
        if not alike.pods:
            self._close(alike)
        return info

    def get(self, key: str) -> QueuedPodInfo | None:
        """Return the pod with that key."""
        alike = self._class_of.get(key)
        return alike.pods[key] if alike is not None else None

    def __len__(self) -> int:
        return len(self._class_of)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (alike.pods[key] for key, alike in self._class_of.items())

    @property
    def gated_count(self) -> int:
        """The number of gated pods."""
        return self._gated

    def rejected_by(self, plugins: Iterable[str]) -> list[AlikePods]:
        """Return the classes of pods that any of the plugins helped to reject."""
        classes: dict[_ClassKey, AlikePods] = {}
        for plugin in plugins:
            classes.update(self._by_rejector.get(plugin, ()))
        return list(classes.values())

    def _stays_in(self, alike: AlikePods, info: QueuedPodInfo) -> bool:
        """Return whether the pod's class is still this one; False also where only `_identity` can tell.

        Cheaper than a new identity: each event that concerns many gated pods pushes them all again.
        """
        spec_id, namespace, unschedulable, pending, gating_plugin, labels = alike.identity
        pod = info.pod
        return (
            spec_id == id(pod.spec)
            and gating_plugin == info.gating_plugin
            and unschedulable == info.unschedulable_plugins
            and pending == info.pending_plugins
            and namespace == pod.metadata.namespace
            and not labels
            and not self._are_labels_read(info)
        )

    def _are_labels_read(self, info: QueuedPodInfo) -> bool:
        readers = self.label_readers.get(info.pod.spec.scheduler_name, _NO_PLUGINS)
        return not (readers.isdisjoint(info.unschedulable_plugins) and readers.isdisjoint(info.pending_plugins))

    def _identity(self, info: QueuedPodInfo) -> _ClassKey:
        pod, unschedulable, pending = info.pod, frozenset(info.unschedulable_plugins), frozenset(info.pending_plugins)
        labels = frozenset(pod.metadata.labels.items()) if self._are_labels_read(info) else frozenset[tuple[str, str]]()
        # By id, since replicas share their spec, which an entry keeps alive. A group is like no other: its pods differ.
        of = info if isinstance(info, QueuedPodGroupInfo) else pod.spec
        return id(of), pod.metadata.namespace, unschedulable, pending, info.gating_plugin, labels

    def _open(self, identity: _ClassKey, info: QueuedPodInfo) -> AlikePods:
        rejectors = frozenset(info.rejector_plugins)
        alike = self._classes[identity] = AlikePods(identity, info.pod.spec, info.gating_plugin, rejectors)
        for rejector in rejectors:
            self._by_rejector.setdefault(rejector, {})[identity] = alike
        return alike

    def _close(self, alike: AlikePods) -> None:
        del self._classes[alike.identity]
        for rejector in alike.rejectors:
            classes = self._by_rejector[rejector]
            del classes[alike.identity]
            if not classes:
                del self._by_rejector[rejector]
