"""PodTopologySpread: pods of a kind spread evenly over zones, nodes, or whatever a node label tells apart.

Runs at: PreFilter (with AddPod and RemovePod), Filter (DoNotSchedule), PreScore, Score (ScheduleAnyway),
    NormalizeScores.
Verdict: UnschedulableAndUnresolvable without the label, Unschedulable where the skew would grow too large; an Error
    where a selector is invalid.
Requeue: a pod that counts comes, goes or changes labels; a node in a domain comes, goes, moves or changes taints; the
    pod's own tolerations change where taints count.
Cost: one sum by domain for each constraint, over counts that the snapshot keeps; whatever the number of pods.
Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread, v1.36.2.
Differs: the smallest domain is sought anew after AddPod and RemovePod, where upstream keeps track of two; the same for
    the pods of one node, which is all that is ever tried out.
"""

from __future__ import annotations

from typing import Final

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import PodTopologySpreadArgs
from podium.framework.contract.cluster_event import (
    ActionType,
    EventRegistration,
    EventResource,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import (
    FilterPlugin,
    Handle,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    TableFilterPlugin,
    TableScorePlugin,
)
from podium.framework.contract.status import SKIP, Status, error_status, unresolvable, unschedulable
from podium.objects.core import Node, Pod, PodSpec
from podium.objects.errors import FieldError
from podium.plugins.hints import holds_a_place, queue_if
from podium.plugins.spread_constraints import (
    HARD,
    SOFT,
    DefaultConstraints,
    SpreadConstraint,
    has_all_keys,
    own_constraints,
)
from podium.plugins.spread_counts import NO_LABEL, TOO_SKEWED, HardSpread, SoftSpread

_REASON: Final = "node(s) didn't match pod topology spread constraints"
_REJECTED: Final = {NO_LABEL: unresolvable(f"{_REASON} (missing required label)"), TOO_SKEWED: unschedulable(_REASON)}


class _TriedOut(PreFilterExtensions):
    """Keeps the counts true while pods are tried out."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """Count one more."""
        state.read(HardSpread).add(pod, added, node, 1)
        return None

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """Count one less."""
        state.read(HardSpread).add(pod, removed, node, -1)
        return None


class PodTopologySpread(
    PreFilterPlugin, TableFilterPlugin, FilterPlugin, PreScorePlugin, TableScorePlugin, ScorePlugin
):
    """Rejects nodes whose domain has too many pods of the kind already, and prefers those with few."""

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._defaults = DefaultConstraints(args, handle)
        self._tried_out = _TriedOut()

    def _constraints(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, action)
        return self._defaults.constraints(pod, action)

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        """Count the pods by domain; Skip without hard constraints, Error where one is invalid."""
        try:
            constraints = self._constraints(pod, HARD)
        except FieldError as error:
            reason = "get constraints from pod: obtaining pod's hard topology spread constraints"
            return None, error_status(f"{reason}: {error}")
        if not constraints:
            return None, SKIP
        state.write(HardSpread.of(pod, constraints, snapshot))
        return None, None

    def pre_filter_extensions(self) -> PreFilterExtensions:
        """Counts change as pods are tried out."""
        return self._tried_out

    def filter_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Code 1 for nodes without a label, code 2 for those where the skew would be too large."""
        del pod, snapshot
        return state.read(HardSpread).judge(rows)

    def explain(self, state: CycleState, pod: Pod, verdict: int) -> Status:
        """No label, or too much skew."""
        del state, pod
        return _REJECTED[verdict]

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success, UnschedulableAndUnresolvable or Unschedulable."""
        del pod
        return _REJECTED.get(state.read(HardSpread).judge_node(node.row))

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status | None:
        """Count the pods by domain; Skip without soft constraints, Error where one is invalid."""
        try:
            constraints = self._constraints(pod, SOFT)
        except FieldError as error:
            reason = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            return error_status(f"{reason}: {error}")
        if not constraints:
            return SKIP
        requires_all = bool(pod.spec.topology_spread_constraints) or not self._defaults.is_system
        state.write(SoftSpread.of(pod, constraints, snapshot, rows, requires_all_labels=requires_all))
        return None

    def score_rows(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """How many pods of the kind are in the node's domains, weighted."""
        del pod, snapshot
        return state.read(SoftSpread).score(rows)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """How many pods of the kind are in the node's domains, weighted."""
        del pod
        return state.read(SoftSpread).score_node(node)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """The fewer pods the better; nothing for nodes without the labels."""
        del pod
        return state.read(SoftSpread).normalize(scores)

    def filter_scope(self, spec: PodSpec) -> Scope:
        """Pods everywhere; nothing without hard constraints."""
        return Scope.CLUSTER if self._may_have(spec, HARD) else Scope.NODE

    def score_scope(self, spec: PodSpec) -> Scope:
        """Pods everywhere; nothing without soft constraints."""
        return Scope.CLUSTER if self._may_have(spec, SOFT) else Scope.NODE

    def _may_have(self, spec: PodSpec, action: str) -> bool:
        own = spec.topology_spread_constraints
        return any(each.when_unsatisfiable == action for each in own) if own else self._defaults.has_any(action)

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[EventRegistration, ...]:
        """Pods that come, go or change labels, nodes that come, go or move, tolerations that are added to the pod."""
        of_pods = (
            ActionType.ADD,
            ActionType.DELETE,
            ActionType.UPDATE_POD_LABEL,
            ActionType.UPDATE_POD_TOLERATION,
        )
        of_nodes = (
            ActionType.ADD,
            ActionType.DELETE,
            ActionType.UPDATE_NODE_LABEL,
            ActionType.UPDATE_NODE_TAINT,
        )
        # By default constraints select what the owners of the pod do.
        sees = HintScope.ANYTHING if self._defaults.has_any(HARD) else HintScope.LABELS
        return (
            on(EventResource.POD, *of_pods, hint=self.after_pod_change, scope=sees),
            on(EventResource.NODE, *of_nodes, hint=self.after_node_change, scope=sees),
        )

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        """Queue where a pod that counts came or went, or one came to count or ceased to."""
        if any(changed is not None and not _is_involved(pod, changed) for changed in (old, new)):
            return QueueingHint.SKIP
        constraints = self._constraints(pod, HARD)
        if old is not None and new is not None:
            return queue_if(_may_help(pod, old, new, constraints))
        changed = old if new is None else new
        return queue_if(changed is not None and _is_counted(changed, constraints))

    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        """Queue where a node came into a domain, left one, or moved; or changed taints there."""
        constraints = self._constraints(pod, HARD)
        was_in = old is not None and has_all_keys(old.metadata.labels, constraints)
        is_in = new is not None and has_all_keys(new.metadata.labels, constraints)
        if old is None or new is None or was_in != is_in:
            return queue_if(was_in or is_in)
        before, now = old.metadata.labels, new.metadata.labels
        moved = any(before.get(each.topology_key) != now.get(each.topology_key) for each in constraints)
        return queue_if(is_in and (moved or old.spec.taints != new.spec.taints))


def _is_involved(pod: Pod, changed: Pod) -> bool:
    if changed.uid == pod.uid:
        return True
    return holds_a_place(changed) and changed.metadata.namespace == pod.metadata.namespace


def _is_counted(changed: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    return any(each.selector.matches(changed.metadata.labels) for each in constraints)


def _may_help(pod: Pod, old: Pod, new: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    """Whether the update may make room for the pod."""
    tolerates_others = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_others and any(each.honors_taints for each in constraints):
        return True
    before, now = old.metadata.labels, new.metadata.labels
    return any(each.selector.matches(before) != each.selector.matches(now) for each in constraints)
