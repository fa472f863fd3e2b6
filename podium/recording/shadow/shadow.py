"""The shadow of another scheduler: compares each of its bindings with podium's choice.

Owns which bindings are compared, and when a disagreement is examined again: after a delay, in which the watch shows the
bindings that the other scheduler had already assumed. Pure: the caller hands in every change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from podium.config import KubeSchedulerConfiguration
from podium.engine.cluster import Cluster
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.store import ObjectStore
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.status import ScheduleError
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import KubeObject, ResourceType
from podium.recording.shadow.comparison import Comparison, Verdict, compare
from podium.recording.shadow.observed import ObservedCluster
from podium.recording.shadow.plausible_states import BoundPod, plausible_states, state_at_binding
from podium.recording.shadow.report import Disagreement, Reason, Report

SETTLED_S: Final = 2.0
"""The delay after a binding in which the watch shows all bindings that were decided before it."""

_BOUND_KEPT: Final = 20_000

_NEVER_PENDING: Final = "never seen pending"
_LISTED: Final = "bound while objects were listed"


class Listener:
    """Receives the results of a shadow. Methods do nothing by default."""

    def on_comparison(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """Record a compared binding."""

    def on_skip(self, reason: str) -> None:
        """Record a binding that was not compared."""

    def on_disagreement(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """Record a disagreement that was examined again.

        Args:
            pod: its last pending state.
            states: by name, the cluster right before the binding, and the state that explains it, if there is one.
        """


@dataclass(slots=True)
class _PendingPod:
    turn: tuple[int, int]
    since: int
    seen_s: float


@dataclass(slots=True)
class _Open:
    pod: BoundPod
    comparison: Comparison


@dataclass
class Shadow:
    """Follows one cluster.

    Args:
        config: the other scheduler's configuration; its pods are those that name one of the profiles.
        listeners: called with each comparison.
        settled_s: see `SETTLED_S`.

    Raises:
        PluginError, ConfigError: a profile cannot be built.
    """

    config: KubeSchedulerConfiguration
    classes: Mapping[str, type[Plugin]]
    clock: Clock
    listeners: Collection[Listener] = ()
    settled_s: float = SETTLED_S
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        self._observed = ObservedCluster(Cluster(self.config, ObjectStore(()), self.classes))
        self._percentages = {
            profile.scheduler_name: self.config.percentage_of_nodes_to_score
            if profile.percentage_of_nodes_to_score is None
            else profile.percentage_of_nodes_to_score
            for profile in self.config.profiles
        }
        self._pending: dict[str, _PendingPod] = {}
        self._bound_pods: dict[str, BoundPod] = {}
        self._seen_bound: set[str] = set()
        self._is_synced = False
        self._open: deque[_Open] = deque()

    @property
    def resources(self) -> Collection[ResourceType[Any]]:
        """The resources whose changes it needs."""
        return self._observed.resources

    @property
    def unsettled_count(self) -> int:
        """The number of disagreements that are still to be examined again."""
        return len(self._open)

    def on_synced(self) -> None:
        """Note that all objects are listed: pods that appear bound from now on were bound since."""
        self._is_synced = True

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """Take an added or changed object.

        Args:
            is_complete: the state of all other objects is known, since no list is in progress. Otherwise a binding is
                not compared.

        Raises:
            ManifestError: the object cannot be read.
        """
        if is_complete:
            self._is_synced = True
        if not isinstance(item, Pod):
            self._observed.put(resource, item, self.clock.monotonic())
            return
        old = self._observed.cluster.store.get(resource, item.key)
        # A pod created again under its name has no past.
        if old is not None and old.uid != item.uid:
            self.drop(resource, old)
            old = None
        is_new_binding = self._is_new_binding(item)
        was_pending = self._pending.pop(item.uid, None) if item.node_name else None
        number = self._observed.next_number
        self._observed.put(resource, item, self.clock.monotonic())
        if not item.node_name:
            self._seen_bound.discard(item.uid)
            if self._is_own(item) and item.uid not in self._pending:
                self._pending[item.uid] = _PendingPod((-item.priority, number), number, self.clock.monotonic())
        elif not is_new_binding:
            return
        elif not is_complete:
            self._skip(_LISTED)
        elif old is None or was_pending is None:
            self._skip(_NEVER_PENDING)
        else:
            self._compare(old, was_pending, number)

    def _is_own(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._percentages

    def _is_new_binding(self, pod: Pod) -> bool:
        """Tell whether the pod was bound since the shadow follows the cluster; True once per binding.

        A pod that is bound in the first list may have been bound at any time, unless it was seen pending before.
        """
        if not pod.node_name or not self._is_own(pod) or pod.uid in self._seen_bound:
            return False
        self._seen_bound.add(pod.uid)
        # Before all objects are listed, a bound pod may have been bound long ago, unless it was seen pending.
        return self._is_synced or pod.uid in self._pending

    def _skip(self, reason: str) -> None:
        """Count a binding that is not compared."""
        self.report.not_compared[reason] += 1
        for listener in self.listeners:
            listener.on_skip(reason)

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Take a deletion."""
        self._pending.pop(item.metadata.uid, None)
        self._seen_bound.discard(item.metadata.uid)
        self._observed.drop(resource, item, self.clock.monotonic())

    def remove(self, resource: ResourceType[Any], key: str) -> None:
        """Take the deletion of the object with that key."""
        item = self._observed.cluster.store.get(resource, key)
        if item is not None:
            self.drop(resource, item)

    def settle(self, *, is_final: bool = False) -> Iterator[None]:
        """Examine the due disagreements again, oldest first, one comparison per step.

        Between steps the caller may do other work and hand in changes.

        Args:
            is_final: all disagreements are due.
        """
        while self._open:
            oldest = self._open[0]
            if not is_final and self.clock.monotonic() - oldest.pod.binding.at_s < self.settled_s:
                return
            yield from self._explain(oldest.pod, oldest.comparison)
            self._open.popleft()

    def _compare(self, old: Pod, was_pending: _PendingPod, number: int) -> None:
        (binding,) = self._observed.changes(number)
        pod = BoundPod(old, was_pending.turn, was_pending.since, binding)
        self._bound_pods[old.uid] = pod
        # The oldest first, since a dict keeps insertion order.
        if len(self._bound_pods) > _BOUND_KEPT:
            del self._bound_pods[next(iter(self._bound_pods))]
        state = state_at_binding(pod, self._observed)
        assert state is not None, "the binding is the last change"
        started_s = self.clock.monotonic()
        comparison = self._comparison(state, pod)
        ended_s = self.clock.monotonic()
        durations = {"evaluation_s": ended_s - started_s, "binding_s": binding.at_s - was_pending.seen_s}
        self.report.verdicts[comparison.verdict] += 1
        # Kept for quantiles of the report; a number each, for hours of bindings.
        self.report.evaluation_s.append(durations["evaluation_s"])
        self.report.binding_s.append(durations["binding_s"])
        for listener in self.listeners:
            listener.on_comparison(comparison, **durations)
        if not comparison.verdict.agrees:
            self._open.append(_Open(pod, comparison))

    def _comparison(self, state: Cluster, bound_pod: BoundPod) -> Comparison:
        node, pod = bound_pod.binding.new.node_name, bound_pod.pod
        try:
            return compare(state.evaluate(pod), pod, node, self._percentages[pod.spec.scheduler_name])
        except (ScheduleError, ClusterError, ManifestError) as error:
            return Comparison(Verdict.FAILED, node, reasons=(str(error),))

    def _explain(self, bound_pod: BoundPod, comparison: Comparison) -> Iterator[None]:
        state = state_at_binding(bound_pod, self._observed)
        states: dict[str, Cluster] = {}
        # Stays if no state can be rebuilt: too many changes have come since.
        reason, view, count = Reason.TOO_LATE, "", 0
        if state is not None:
            states["as seen"] = state
            unexplained = Reason.EXTENDERS if self.config.extenders else Reason.UNEXPLAINED
            reason = Reason.SAMPLING if comparison.may_be_sampled else unexplained
            for candidate in plausible_states(bound_pod, state, self._observed, self._bound_pods.get):
                count += 1
                if self._comparison(candidate.cluster, bound_pod).verdict.agrees:
                    reason = Reason.STALE_VIEW if candidate.is_in_order else Reason.OTHER_ORDER
                    view = str(candidate)
                    states["as decided"] = candidate.cluster
                    break
                yield
        pod = bound_pod.pod
        disagreement = Disagreement(pod.key, pod.spec.scheduler_name, comparison, reason, view, count)
        self.report.add(disagreement)
        for listener in self.listeners:
            listener.on_disagreement(disagreement, pod, states)
