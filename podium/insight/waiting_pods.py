"""The pods that wait in a rehearsal, in the scheduler's own queue: its order, backoffs and queueing hints.

It takes the place of the `FailedPods` of a trial, which keep no order and no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.placement import Placement
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_DELETE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
)
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.profile.runtime import Framework
from podium.insight.failed_pods import FailedPods
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS, EventResource, ResourceType
from podium.queues import PodBackoff, QueueProfile, QueueState, QueueTimes, SchedulingQueue, build_hint_map


class WaitingPods(FailedPods):
    """The queue of one cluster in memory.

    Args:
        cluster: returns the cluster as it is whenever it is called.
        clock: the time of the rehearsal.
    """

    def __init__(self, cluster: Callable[[], Cluster], config: KubeSchedulerConfiguration, clock: Clock) -> None:
        self._cluster = cluster
        self._profiles = cluster().profiles
        self._in_flight: dict[str, QueuedPodInfo] = {}
        self._queue = SchedulingQueue(
            _queue_profiles(self._profiles),
            # All profiles have the same QueueSort plugin, which the configuration's validation demands.
            next(iter(self._profiles.values())).queue_sort,
            clock,
            lambda key: cluster().store.get(PODS, key),
            wake=lambda: None,
            times=QueueTimes(PodBackoff(config.pod_initial_backoff_s, config.pod_max_backoff_s)),
            release=config.release,
        )

    def enter(self, pods: Iterable[Pod]) -> None:
        """Add pods that a profile serves, one after the other."""
        for pod in pods:
            if pod.spec.scheduler_name in self._profiles and not pod.is_terminating:
                self._queue.add(pod)

    def pop(self) -> Pod | None:
        """Return the next pod to attempt as it is now; None if no pod is ready."""
        self._queue.run_due_timers()
        while (info := self._queue.pop()) is not None:
            pod = self._cluster().store.get(PODS, info.key)
            if pod is not None and not pod.node_name and not pod.is_terminating:
                info.pod = pod
                self._in_flight[pod.key] = info
                return pod
            self._queue.done(info.pod.uid)
        return None

    def finish(self, pod: Pod) -> None:
        """Note that the attempt has placed the pod."""
        if self._in_flight.pop(pod.key, None) is not None:
            self._queue.done(pod.uid)
        else:
            # It was placed together with its gang, and waits no more.
            self._queue.delete(pod)

    def leave(self, pod: Pod) -> None:
        """Note that a waiting pod was deleted."""
        self._queue.delete(pod)

    def activate(self, key: str) -> None:
        """Let the pod be tried at once, if it waits."""
        pod = self._cluster().store.get(PODS, key)
        if pod is not None and not pod.node_name:
            self._queue.activate([pod])

    def is_gated(self, pod: Pod) -> bool:
        """Return whether a plugin keeps the pod from being attempted."""
        return self._queue.state_of(pod) is QueueState.GATED

    # ------------------------------------------------------------ as FailedPods

    def __contains__(self, key: str) -> bool:
        """Return whether the pod failed, and no later change may help it."""
        pod = self._cluster().store.get(PODS, key)
        return pod is not None and self._queue.state_of(pod) is QueueState.UNSCHEDULABLE

    def add(self, pod: Pod, placement: Placement) -> None:
        """Note that an attempt at the pod failed: it waits for an event, or for the end of its backoff."""
        info = self._in_flight.pop(pod.key, None)
        current = self._cluster().store.get(PODS, pod.key)
        if info is None or current is None:
            return
        info.pod = current
        info.gating_plugin = ""
        diagnosis = placement.diagnosis
        info.unschedulable_plugins = set() if diagnosis is None else set(diagnosis.unschedulable_plugins)
        info.pending_plugins = set() if diagnosis is None else set(diagnosis.pending_plugins)
        self._queue.add_unschedulable_if_not_present(info)

    def discard(self, key: str) -> None:
        """Let the pod be tried again; a new pod enters the queue."""
        pod = self._cluster().store.get(PODS, key)
        if pod is None or pod.node_name:
            return
        state = self._queue.state_of(pod)
        if state is QueueState.GONE:
            self.enter([pod])
        elif state is QueueState.UNSCHEDULABLE:
            self._queue.activate([pod])

    def clear(self) -> None:
        """Let all pods be tried again once their backoff has ended."""
        self._queue.move_all(UNSCHEDULABLE_TIMEOUT)

    def on_volumes_taken(self) -> None:
        """Let the pods be tried again that volumes keep from a node: those that a pod has taken may be theirs."""
        self.on_event(ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.UPDATE), None, None)

    def on_object(self, resource: ResourceType[Any] | None, old: Any, new: Any) -> None:
        """Let the pods be tried again that the change may help: no pod, if it is of a kind that no plugin reads."""
        if resource is NODES:
            self.clear()
        elif resource is not None and isinstance(resource.event, EventResource):
            action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
            self.on_event(ClusterEvent(resource.event, action), old, new)

    def on_nomination_end(self, pod: Pod) -> None:
        """Let the pods be tried again that the end of a pod's nomination may help: those of no higher priority.

        Args:
            pod: as it was nominated.
        """
        self._move_all(ASSIGNED_POD_DELETE, pod, None, lambda other_pod: other_pod.priority <= pod.priority)

    def on_event(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Let the pods be tried again that the change may help."""
        self._move_all(event, old, new)

    def _move_all(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: Callable[[Pod], bool] | None = None
    ) -> None:
        frameworks = self._cluster().profiles
        # Hint functions belong to plugins, which are built again where other objects have changed.
        if frameworks is not self._profiles:
            self._profiles = frameworks
            self._queue.replace_plugins(_queue_profiles(frameworks))
        self._queue.move_all(event, old, new, pre_check)


def age_of(pod: Pod) -> tuple[str, str]:
    """Return the sort key of pods that enter the queue: the older ones first."""
    return pod.metadata.creation_timestamp or "9", pod.key


def _queue_profiles(frameworks: Mapping[str, Framework]) -> list[QueueProfile]:
    return [
        QueueProfile(
            name,
            framework.pre_enqueue,
            build_hint_map(framework.plugins.values(), framework.release.events, may_close_nodes=True),
        )
        for name, framework in frameworks.items()
    ]
