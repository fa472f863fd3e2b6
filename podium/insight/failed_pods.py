"""The pods of a trial that could not be placed, and the changes after which each is tried again.

A pod is tried again if one of the plugins that rejected it says so of what has changed, as in a scheduling queue, so
that its message is that of its last attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.engine.placement import Placement
from podium.framework.contract.cluster_event import ASSIGNED_POD_DELETE, ClusterEvent
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.profile.runtime import Framework
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import ResourceType
from podium.queues import Hints, QueueObserver, Strategy, build_hint_map


class FailedPods:
    """The keys of the pods that failed, with the plugins that rejected them.

    Args:
        frameworks: the profiles as they are whenever it is called.
    """

    def __init__(self, frameworks: Callable[[], Mapping[str, Framework]]) -> None:
        self._frameworks = frameworks
        self._asked: Mapping[str, Framework] = {}
        self._hints = Hints({}, ManualClock(), QueueObserver())
        self._infos: dict[str, QueuedPodInfo] = {}

    def __contains__(self, key: str) -> bool:
        """Return whether the pod failed, and no later change may help it."""
        return key in self._infos

    def add(self, pod: Pod, placement: Placement) -> None:
        """Note that an attempt at the pod failed."""
        info = self._infos[pod.key] = QueuedPodInfo(pod, 0.0)
        if placement.diagnosis is not None:
            info.unschedulable_plugins = placement.diagnosis.unschedulable_plugins
            info.pending_plugins = placement.diagnosis.pending_plugins

    def discard(self, key: str) -> None:
        """Let the pod be tried again."""
        self._infos.pop(key, None)

    def clear(self) -> None:
        """Let all pods be tried again."""
        self._infos.clear()

    def on_volumes_taken(self) -> None:
        """Let the pods be tried again that have volumes: those that a pod has taken may be theirs."""
        self._infos = {key: info for key, info in self._infos.items() if not info.pod.spec.volumes}

    def on_object(self, resource: ResourceType[Any] | None, old: Any, new: Any) -> None:  # noqa: ARG002
        """Let all pods be tried again after the change of an object other than a pod."""
        self.clear()

    def on_nomination_end(self, pod: Pod) -> None:
        """Let the pods be tried again that the end of a pod's nomination may help: those of no higher priority.

        Args:
            pod: as it was nominated.
        """
        self._try_again(ASSIGNED_POD_DELETE, pod, None, lambda other_pod: other_pod.priority <= pod.priority)

    def on_event(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Let the pods be tried again that the change may help."""
        self._try_again(event, old, new)

    def _try_again(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: Callable[[Pod], bool] | None = None
    ) -> None:
        if not self._infos:
            return
        frameworks = self._frameworks()
        # Hint functions belong to plugins, which a step that changes the configuration replaces.
        if frameworks is not self._asked:
            self._asked = frameworks
            self._hints.replace(
                {
                    name: build_hint_map(framework.plugins.values(), framework.release.events)
                    for name, framework in frameworks.items()
                }
            )
        interest = self._hints.interest(event)
        # A copy: helped pods leave while it is gone through.
        for key, info in list(self._infos.items()):
            is_asked = pre_check is None or pre_check(info.pod)
            if is_asked and self._hints.strategy(info, interest, old, new) is not Strategy.SKIP:
                del self._infos[key]
