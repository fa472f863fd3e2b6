"""PodTopologySpread: selected pods are spread evenly over zones, nodes, or the domains of any other node label.

Runs at: PreFilter (with AddPod and RemovePod), Filter (DoNotSchedule), PreScore, Score (ScheduleAnyway),
    NormalizeScores.
Verdict: UnschedulableAndUnresolvable without the label, Unschedulable if the skew would be too large; an Error if a
    selector is invalid.
Requeue: a counted pod is added, deleted or changes labels; a node in a domain is added, deleted, moved or changes
    taints; the pod's own tolerations change, if taints matter.
Cost: one sum by domain for each constraint, over counts that the snapshot keeps. It does not depend on the number of
pods.
Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread, v1.36.2.
Differs: the smallest domain is searched again after AddPod and RemovePod, where upstream tracks two. The result is the
    same for pods of one node, and dry runs never go beyond one node.
"""

from __future__ import annotations

from typing import Final

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.config.args import PodTopologySpreadArgs
from podium.framework import contract as fwk
from podium.objects.core import Node, Pod, PodSpec
from podium.objects.errors import FieldError
from podium.plugins.pod_topology_spread.constraints import (
    HARD,
    SOFT,
    DefaultConstraints,
    SpreadConstraint,
    has_all_keys,
    own_constraints,
)
from podium.plugins.pod_topology_spread.counts import NO_LABEL, TOO_SKEWED, HardSpread, SoftSpread
from podium.plugins.shared.hints import occupies_node, pod_events, queue_if

_REASON: Final = "node(s) didn't match pod topology spread constraints"
_REJECTED: Final = {
    NO_LABEL: fwk.unresolvable(f"{_REASON} (missing required label)"),
    TOO_SKEWED: fwk.unschedulable(_REASON),
}


class _TriedOut(fwk.PreFilterExtensions):
    """Updates the counts when a dry run adds or removes a pod."""

    def add_pod(self, state: fwk.CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo) -> fwk.Status | None:
        """Count the added pod."""
        state.read(HardSpread).add(pod, pod_to_add, node, 1)
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo) -> fwk.Status | None:
        """Stop counting the removed pod."""
        state.read(HardSpread).add(pod, pod_to_remove, node, -1)
        return None


class PodTopologySpread(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
):
    """Rejects nodes whose domain has too many matching pods already, and prefers domains with few."""

    def __init__(self, args: PodTopologySpreadArgs, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._defaults = DefaultConstraints(args, handle)
        self._tried_out = _TriedOut()

    @property
    def may_reject_by_default(self) -> bool:
        """Return whether the configuration adds hard constraints to pods that define none."""
        return self._defaults.has_any(HARD)

    def _constraints(self, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        if pod.spec.topology_spread_constraints:
            return own_constraints(pod, action)
        return self._defaults.constraints(pod, action)

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Count the pods by domain. Return Skip without hard constraints, Error if one is invalid."""
        try:
            spread = self.hard_spread(pod, snapshot)
        except FieldError as error:
            reason = "get constraints from pod: obtaining pod's hard topology spread constraints"
            return None, fwk.error_status(f"{reason}: {error}")
        if spread is None:
            return None, fwk.SKIP
        state.write(spread)
        return None, None

    def hard_spread(self, pod: Pod, snapshot: Snapshot) -> HardSpread | None:
        """Count the pods by domain of each hard constraint; None without any. Raises: FieldError: one is invalid."""
        constraints = self._constraints(pod, HARD)
        return HardSpread.of(pod, constraints, snapshot) if constraints else None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return the extensions that update the counts."""
        return self._tried_out

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes without a label, 2 for nodes where the skew would be too large."""
        return state.read(HardSpread).verdicts(rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status for a missing label or for too much skew."""
        return _REJECTED[verdict]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, UnschedulableAndUnresolvable or Unschedulable."""
        return _REJECTED.get(state.read(HardSpread).verdict(node.row))

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Count the pods by domain. Return Skip without soft constraints, Error if one is invalid."""
        try:
            constraints = self._constraints(pod, SOFT)
        except FieldError as error:
            reason = "calculating preScoreState: obtaining pod's soft topology spread constraints"
            return fwk.error_status(f"{reason}: {error}")
        if not constraints:
            return fwk.SKIP
        requires_all = bool(pod.spec.topology_spread_constraints) or not self._defaults.is_system
        state.write(SoftSpread.of(pod, constraints, snapshot, rows, requires_all_labels=requires_all))
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the weighted number of matching pods in the node's domains."""
        return state.read(SoftSpread).score(rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the weighted number of matching pods in the node's domains."""
        return state.read(SoftSpread).score_node(node)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Invert the scores, so that fewer pods score higher. Nodes without the labels get 0."""
        return state.read(SoftSpread).normalize(scores)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER with hard constraints, because pods on other nodes count; NODE without."""
        return fwk.Scope.CLUSTER if self._may_have(spec, HARD) else fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return CLUSTER with soft constraints, because pods on other nodes count; NODE without."""
        return fwk.Scope.CLUSTER if self._may_have(spec, SOFT) else fwk.Scope.NODE

    def _may_have(self, spec: PodSpec, action: str) -> bool:
        pod_constraints = spec.topology_spread_constraints
        return (
            any(constraint.when_unsatisfiable == action for constraint in pod_constraints)
            if pod_constraints
            else self._defaults.has_any(action)
        )

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods added, deleted or with changed labels; nodes added, deleted or changed; and new tolerations."""
        of_assigned = fwk.ActionType.ADD | fwk.ActionType.DELETE | fwk.ActionType.UPDATE_POD_LABEL
        of_own = fwk.ActionType.UPDATE_POD_LABEL | fwk.ActionType.UPDATE_POD_TOLERATION
        of_nodes = (
            fwk.ActionType.ADD,
            fwk.ActionType.DELETE,
            fwk.ActionType.UPDATE_NODE_LABEL,
            fwk.ActionType.UPDATE_NODE_TAINT,
        )
        # Default constraints use the selectors of the pod's owners, so the hint depends on more than the pod.
        sees = fwk.HintScope.ANYTHING if self._defaults.has_any(HARD) else fwk.HintScope.LABELS
        return (
            *pod_events(self._events, of_assigned, of_own, self.after_pod_change, sees),
            fwk.on(fwk.EventResource.NODE, *of_nodes, hint=self.after_node_change, scope=sees),
        )

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if a counted pod was added or deleted, or a pod began or ceased to be counted."""
        if any(state is not None and not _is_involved(pod, state) for state in (old, new)):
            return fwk.QueueingHint.SKIP
        constraints = self._constraints(pod, HARD)
        if old is not None and new is not None:
            return queue_if(_may_help(pod, old, new, constraints))
        other_pod = old if new is None else new
        return queue_if(other_pod is not None and _is_counted(other_pod, constraints))

    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> fwk.QueueingHint:
        """Queue if a node was added to a domain, left it, or moved to another; or changed its taints there."""
        constraints = self._constraints(pod, HARD)
        was_in = old is not None and has_all_keys(old.metadata.labels, constraints)
        is_in = new is not None and has_all_keys(new.metadata.labels, constraints)
        if old is None or new is None or was_in != is_in:
            return queue_if(was_in or is_in)
        old_labels, new_labels = old.metadata.labels, new.metadata.labels
        is_moved = any(
            old_labels.get(constraint.topology_key) != new_labels.get(constraint.topology_key)
            for constraint in constraints
        )
        return queue_if(is_in and (is_moved or old.spec.taints != new.spec.taints))


def _is_involved(pod: Pod, other_pod: Pod) -> bool:
    if other_pod.uid == pod.uid:
        return True
    return occupies_node(other_pod) and other_pod.metadata.namespace == pod.metadata.namespace


def _is_counted(other_pod: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    return any(constraint.selector.matches(other_pod.metadata.labels) for constraint in constraints)


def _may_help(pod: Pod, old: Pod, new: Pod, constraints: tuple[SpreadConstraint, ...]) -> bool:
    """Return whether the update may let the pod fit."""
    tolerates_others = new.uid == pod.uid and new.spec.tolerations != old.spec.tolerations
    if tolerates_others and any(constraint.honors_taints for constraint in constraints):
        return True
    old_labels, new_labels = old.metadata.labels, new.metadata.labels
    return any(
        constraint.selector.matches(old_labels) != constraint.selector.matches(new_labels) for constraint in constraints
    )
