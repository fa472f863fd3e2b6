"""The event handler of pods: each change goes to the cache, the queue, and the pod group.

Source: kubernetes pkg/scheduler/eventhandlers.go, v1.36.2 and v1.37.2.
Differs: a pending pod with an unreadable field is not queued, but reported; it is checked again when it changes. A
bound pod that is pending again, as after a restore of etcd, is scheduled again; upstream ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType

from podium.binder import EventRecorder, WaitingPods, failed_scheduling
from podium.cluster import Cache, CacheError
from podium.cluster.pod_states import PodState
from podium.config import NEWEST, Release
from podium.daemon.conflicts import Conflicts
from podium.daemon.handlers import BrokenObjects, MeasuredHandler
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
)
from podium.framework.contract.pod_groups import PodGroups
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.objects.pod_limits import excess
from podium.objects.requests import filter_requests
from podium.objects.resource_types import EventResource
from podium.objects.selectors import compile_node_selector
from podium.objects.topology_labels import REGION, ZONE
from podium.queues import SchedulingQueue, pod_changes
from podium.telemetry import Metrics

log = get_logger("informers")

_ASSIGNED_POD_UPDATE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE).label
_ASSIGNED_POD_RELABELLED = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
_TOPOLOGY_LABELS = {REGION, ZONE}
_NOT_STARTED = ("", "Pending")
_REQUIRED_NODE_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


class PodHandler(MeasuredHandler):
    """Handles pods that are added, updated, bound or deleted.

    Args:
        scheduler_names: podium's scheduler names; other schedulers' pods count only once they are bound.
        saw_unbound: called when a pod has lost the node that it was bound to.
        binding_cycles: the target nodes of the binding cycles under way, by pod uid.
        pod_groups: the pod groups, whose pods that wait are kept up to date here; None if each pod is scheduled alone.
        release: the release whose events are raised.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        waiting_pods: WaitingPods,
        recorder: EventRecorder,
        scheduler_names: Container[str],
        conflicts: Conflicts,
        clock: Clock,
        metrics: Metrics,
        saw_unbound: Callable[[Pod], None] = lambda _: None,
        binding_cycles: Mapping[str, str] = MappingProxyType({}),
        pod_groups: PodGroups | None = None,
        release: Release = NEWEST,
    ) -> None:
        super().__init__(clock, metrics)
        self._release = release
        self._unscheduled_add, self._unscheduled_update, self._unscheduled_delete = (
            ClusterEvent(release.events.unscheduled_pod, action)
            for action in (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
        )
        self._add_label, self._update_label = self._unscheduled_add.label, self._unscheduled_update.label
        self._raises_additions = pod_groups is not None and pod_groups.rules.have_gangs
        self._cache = cache
        self._conflicts = conflicts
        self._saw_unbound = saw_unbound
        self._binding_cycles = binding_cycles
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._recorder = recorder
        self._scheduler_names = scheduler_names
        self._report_broken = BrokenObjects(metrics)
        self._reported: dict[str, tuple[str, ...]] = {}

    def on_add(self, new: Pod) -> None:
        """Handle an added pod."""
        self.measure("AssignedPodAdd" if new.node_name else self._add_label, self._add, new)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Handle an updated pod, which may have been bound."""
        if old.node_name and old.node_name != new.node_name:
            self.measure("AssignedPodDelete", self._unbound, old, new)
        elif old.node_name:
            self.measure(_ASSIGNED_POD_UPDATE, self._update_assigned, old, new)
        elif new.node_name:
            self.measure("AssignedPodAdd", self._on_bound, old, new)
        elif self._is_ours(new):
            seconds = self.measure(self._update_label, self._update_pending, old, new)
            for event in pod_changes(old, new, self._release, is_own=False):
                if event != self._unscheduled_update:
                    self._metrics.observe_event(event.label, seconds)

    def on_delete(self, old: Pod) -> None:
        """Handle a deleted or ended pod: ended pods leave the watch."""
        if old.node_name:
            self.measure("AssignedPodDelete", self._delete_assigned, old)
        elif self._is_ours(old):
            self.measure(self._unscheduled_delete.label, self._delete_pending, old)

    # ------------------------------------------------------------ bound pods

    def _add(self, pod: Pod) -> None:
        if pod.node_name:
            self._add_assigned(pod)
        elif self._is_ours(pod) and self._is_readable(pod):
            self._add_pending(pod)

    def _add_pending(self, pod: Pod) -> None:
        if (node_name := self._binding_cycles.get(pod.uid)) is None:
            self._join_group(pod)
            self._queue.add(pod)
            if self._raises_additions:
                self._queue.move_all(self._unscheduled_add, None, pod)
            return
        # It was bound or deleted, and a restore of etcd has undone that. Its binding cycle may yet bind it, so it
        # counts on the node; if it is not bound, the cycle requeues it.
        self._to_cache(lambda pod_again: self._cache.assume_pod(pod_again, node_name), pod)

    def _add_assigned(self, pod: Pod) -> None:
        assumed_pod = self._cache.pod(pod.uid)
        self._to_cache(self._cache.add_pod, pod)
        self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
        if assumed_pod is not None and _is_relabelled(assumed_pod, pod):
            # Its labels changed during its binding cycle; until now the cache counted it with the old ones.
            self._queue.move_all(_ASSIGNED_POD_RELABELLED, assumed_pod, pod)

    def _on_bound(self, old: Pod, new: Pod) -> None:
        self._reported.pop(old.uid, None)
        self._add_assigned(new)
        is_ours = self._is_ours(new)
        self._conflicts.on_bound(new, by_us=is_ours)
        if is_ours or self._is_ours(old):
            self._queue.delete(old)

    def _update_assigned(self, old: Pod, new: Pod) -> None:
        started_s = self._clock.monotonic()
        self._to_cache(self._cache.update_pod, new)
        before_s = self._clock.monotonic() - started_s
        for event in pod_changes(old, new, self._release, is_own=False):
            if event.label == _ASSIGNED_POD_UPDATE:
                self._queue.move_all(event, old, new)
            else:
                self.measure(event.label, self._queue.move_all, event, old, new, before_s=before_s)

    def _unbound(self, old: Pod, new: Pod) -> None:
        """Handle a bound pod that is pending again or bound elsewhere, which no API server allows; see `history`."""
        log.warning("A bound pod has lost its node", pod=new.key, before=old.node_name, node=new.node_name)
        self._to_cache(self._cache.remove_pod, old)
        self._queue.move_all(ASSIGNED_POD_DELETE, old, None)
        self._add(new)
        self._saw_unbound(new)

    def _delete_assigned(self, pod: Pod) -> None:
        self._to_cache(self._cache.remove_pod, pod)
        if pod.status.phase in _NOT_STARTED and not pod.is_terminating and self._is_ours(pod):
            self._conflicts.left_before_start(pod)
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)

    def _to_cache(self, operation: Callable[[Pod], None], pod: Pod) -> None:
        try:
            operation(pod)
        except CacheError as error:
            log.error("The cache refused a change", pod=pod.key, error=str(error))
        for node in self._cache.take_opened():
            log.info("Node is open to new pods again", node=node.name)
            self._queue.move_all(NODE_ADD, None, node)

    # ------------------------------------------------------------ pods that wait

    def _join_group(self, pod: Pod) -> None:
        if self._cache.pod_groups is not None:
            self._cache.pod_groups.put_waiting(pod)

    def _leave_group(self, pod: Pod) -> None:
        if self._cache.pod_groups is not None:
            self._cache.pod_groups.remove(pod)

    def _update_pending(self, old: Pod, new: Pod) -> None:
        if self._cache.is_assumed(new.uid):
            if new.is_terminating and not old.is_terminating:
                self._assumed_pod_goes(new)
            return
        if not self._is_readable(new):
            self._leave_group(old)
            self._queue.delete(old)
            return
        if new.uid in self._binding_cycles and not new.is_terminating:
            self._add_pending(new)
            return
        self._join_group(new)
        self._queue.update(old, new)
        nominated_node_name = old.status.nominated_node_name
        if nominated_node_name and nominated_node_name != new.status.nominated_node_name:
            self._nomination_ends(old)

    def _delete_pending(self, pod: Pod) -> None:
        self._reported.pop(pod.uid, None)
        self._leave_group(pod)
        self._queue.delete(pod)
        if self._cache.is_assumed(pod.uid):
            self._assumed_pod_goes(pod)
        elif pod.status.nominated_node_name:
            self._nomination_ends(pod)

    def _assumed_pod_goes(self, pod: Pod) -> None:
        """Free the resources of a pod deleted during its binding cycle, and reject it if it waits at Permit."""
        assumed_pod = self._cache.pod(pod.uid)
        assert assumed_pod is not None
        if not self._waiting_pods.reject(pod.uid) and self._cache.state_of(pod.uid) is PodState.ASSUMED:
            self._cache.forget_pod(pod)
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed_pod, None)

    def _nomination_ends(self, pod: Pod) -> None:
        """End the pod's nomination: its reserved resources are free for pods of no higher priority."""
        priority = pod.priority
        self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, lambda other_pod: other_pod.priority <= priority)

    # ------------------------------------------------------------ which pods are scheduled

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._scheduler_names

    def _is_readable(self, pod: Pod) -> bool:
        """Return True if the pod can be scheduled; report its unreadable fields once.

        An invalid selector matches no node: if other selector terms remain, the pod can be placed all the same.
        """
        try:
            filter_requests(pod.spec)
        except FieldError as error:
            if self._report_news(pod, (error,)):
                self._recorder.record(failed_scheduling(pod, str(error)))
            return False
        invalid = _invalid_selectors(pod)
        if invalid or self._reported:
            self._report_news(pod, invalid)
        return True

    def _report_news(self, pod: Pod, errors: tuple[FieldError, ...]) -> bool:
        """Report these errors unless they were reported for the pod before, and return whether they were new."""
        texts = tuple(str(error) for error in errors)
        former_texts = self._reported.pop(pod.uid, ())
        if texts:
            self._reported[pod.uid] = texts
        if texts == former_texts:
            return False
        for error in errors:
            self._report_broken(pod, error)
        return True


def _is_relabelled(assumed_pod: Pod, pod: Pod) -> bool:
    """Return True if labels have changed other than those that admission (PodTopologyLabels) copies from the node."""
    former, current = assumed_pod.metadata.labels, pod.metadata.labels
    return former != current and not {key for key, _ in former.items() ^ current.items()} <= _TOPOLOGY_LABELS


def _invalid_selectors(pod: Pod) -> tuple[FieldError, ...]:
    """Return the errors in the node selector of the pod's required node affinity."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ()
    if excess(pod.spec):
        return ()  # The attempt that rejects the pod reports it.
    return compile_node_selector(affinity.node_affinity.required, _REQUIRED_NODE_AFFINITY).errors
