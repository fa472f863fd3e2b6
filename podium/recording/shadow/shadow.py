"""The shadow of another scheduler: compares each of its bindings with what podium would have done.

Owns which bindings are compared, and when a disagreement is looked at again: a while later, so that bindings that the
other scheduler had assumed have been seen as well. Pure: it is told of every change, and the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

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
from podium.recording.shadow.hindsight import Bound, state_at_binding, views
from podium.recording.shadow.observed import ObservedCluster
from podium.recording.shadow.report import Disagreement, Reason, Report

SETTLED_S: Final = 2.0
"""How long after a binding all bindings that were decided before it are assumed to have been seen."""

_BOUND_KEPT: Final = 20_000

_NEVER_PENDING: Final = "never seen pending"
_LISTED: Final = "bound while objects were listed"


class Listener(Protocol):
    """Receives every comparison."""

    def compared(self, comparison: Comparison, *, evaluation_s: float, binding_s: float) -> None:
        """A binding was compared."""
        ...

    def skipped(self, reason: str) -> None:
        """A binding was seen and not compared."""
        ...

    def disagreed(self, disagreement: Disagreement, pod: Pod, states: Mapping[str, Cluster]) -> None:
        """A disagreement was looked at again.

        Args:
            pod: as it was while it was pending.
            states: the cluster when the binding was seen, and the one that explains it, if there is one, by name.
        """
        ...


@dataclass(slots=True)
class _Pending:
    turn: tuple[int, int]
    since: int
    seen_s: float


@dataclass(slots=True)
class _Open:
    bound: Bound
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
            each.scheduler_name: self.config.percentage_of_nodes_to_score
            if each.percentage_of_nodes_to_score is None
            else each.percentage_of_nodes_to_score
            for each in self.config.profiles
        }
        self._pending: dict[str, _Pending] = {}
        self._bound: dict[str, Bound] = {}
        self._seen_bound: set[str] = set()
        self._is_synced = False
        self._open: deque[_Open] = deque()

    @property
    def resources(self) -> Collection[ResourceType[Any]]:
        """The kinds that it has to be told of."""
        return self._observed.resources

    @property
    def unsettled(self) -> int:
        """How many disagreements are still to be looked at again."""
        return len(self._open)

    def synced(self) -> None:
        """Tell that all objects are known: a pod that is shown bound from now on was bound meanwhile."""
        self._is_synced = True

    def put(self, resource: ResourceType[Any], item: Any, *, is_complete: bool = True) -> None:
        """Tell of an added or changed object.

        Args:
            is_complete: whether all else is known as it was at that time: no list is being taken in. Else nothing is
                compared.

        Raises:
            ManifestError: the object cannot be read.
        """
        if is_complete:
            self._is_synced = True
        if not isinstance(item, Pod):
            self._observed.put(resource, item, self.clock.monotonic())
            return
        old = self._observed.cluster.store.get(resource, item.key)
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
                self._pending[item.uid] = _Pending((-item.priority, number), number, self.clock.monotonic())
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
        """Whether the pod was bound since the shadow follows the cluster; true once for each binding.

        A pod that the first list shows bound may have been bound at any time, unless it was seen pending before.
        """
        if not pod.node_name or not self._is_own(pod) or pod.uid in self._seen_bound:
            return False
        self._seen_bound.add(pod.uid)
        return self._is_synced or pod.uid in self._pending

    def _skip(self, reason: str) -> None:
        """Count a binding that is not compared."""
        self.report.not_compared[reason] += 1
        for listener in self.listeners:
            listener.skipped(reason)

    def drop(self, resource: ResourceType[Any], item: KubeObject) -> None:
        """Tell of a deleted object."""
        self._pending.pop(item.metadata.uid, None)
        self._seen_bound.discard(item.metadata.uid)
        self._observed.drop(resource, item, self.clock.monotonic())

    def remove(self, resource: ResourceType[Any], key: str) -> None:
        """Tell of the deletion of the object with that key."""
        known = self._observed.cluster.store.get(resource, key)
        if known is not None:
            self.drop(resource, known)

    def settle(self, *, all_of_them: bool = False) -> Iterator[None]:
        """Look again at the disagreements that are due, oldest first, one comparison at a time.

        Between two of them the caller may do other work, and tell of changes.
        """
        while self._open:
            oldest = self._open[0]
            if not all_of_them and self.clock.monotonic() - oldest.bound.binding.at_s < self.settled_s:
                return
            yield from self._look_again(oldest.bound, oldest.comparison)
            self._open.popleft()

    def _compare(self, old: Pod, was_pending: _Pending, number: int) -> None:
        (binding,) = self._observed.changes(number)
        bound = Bound(old, was_pending.turn, was_pending.since, binding)
        self._bound[old.uid] = bound
        if len(self._bound) > _BOUND_KEPT:
            del self._bound[next(iter(self._bound))]
        state = state_at_binding(bound, self._observed)
        assert state is not None, "the binding is the last change"
        started_s = self.clock.monotonic()
        comparison = self._compared(state, bound)
        ended_s = self.clock.monotonic()
        durations = {"evaluation_s": ended_s - started_s, "binding_s": binding.at_s - was_pending.seen_s}
        self.report.verdicts[comparison.verdict] += 1
        self.report.evaluation_s.append(durations["evaluation_s"])
        self.report.binding_s.append(durations["binding_s"])
        for listener in self.listeners:
            listener.compared(comparison, **durations)
        if not comparison.verdict.agrees:
            self._open.append(_Open(bound, comparison))

    def _compared(self, state: Cluster, bound: Bound) -> Comparison:
        node, pod = bound.binding.new.node_name, bound.pod
        try:
            return compare(state.evaluate(pod), pod, node, self._percentages[pod.spec.scheduler_name])
        except (ScheduleError, ClusterError, ManifestError) as error:
            return Comparison(Verdict.FAILED, node, reasons=(str(error),))

    def _look_again(self, bound: Bound, comparison: Comparison) -> Iterator[None]:
        state = state_at_binding(bound, self._observed)
        states: dict[str, Cluster] = {}
        reason, shown, tried = Reason.TOO_LATE, "", 0
        if state is not None:
            states["as seen"] = state
            unexplained = Reason.EXTENDERS if self.config.extenders else Reason.UNEXPLAINED
            reason = Reason.SAMPLING if comparison.may_be_sampled else unexplained
            for view in views(bound, state, self._observed, self._bound.get):
                tried += 1
                if self._compared(view.cluster, bound).verdict.agrees:
                    reason = Reason.STALE_VIEW if view.is_in_order else Reason.OTHER_ORDER
                    shown = str(view)
                    states["as decided"] = view.cluster
                    break
                yield
        pod = bound.pod
        found = Disagreement(pod.key, pod.spec.scheduler_name, comparison, reason, shown, tried)
        self.report.add(found)
        for listener in self.listeners:
            listener.disagreed(found, pod, states)
