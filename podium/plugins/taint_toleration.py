"""TaintToleration: tainted nodes take only pods that tolerate the taints.

Runs at: PreFilter, Filter (taints NoSchedule and NoExecute), PreScore, Score (taints PreferNoSchedule),
NormalizeScores.
Verdict: UnschedulableAndUnresolvable.
Requeue: a node whose taints the pod tolerates is added, or a node's taints become tolerable; the pod's own tolerations
change.
Cost: tolerations are evaluated for each distinct set of taints once per pod spec; then one gather over the rows.
Source: kubernetes pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.matching.lookup import Lookup
from podium.cluster.matching.taints import is_repelled
from podium.framework import contract as fwk
from podium.objects.core import Node, Pod, PodSpec, Taint, Toleration, once_per_spec
from podium.objects.tolerations import is_tolerated, taint_text
from podium.plugins.shared.hints import is_about, queue_if, taint_events
from podium.plugins.shared.normalize import default_normalize

_PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
_SETS_TOLD_MAX: Final = 100
"""The number of most frequent sets of taints that a rejection names: a longer list would not be read."""
DETAIL_PREFIX: Final = "untolerated taint "
"""How a detail begins; a text that gives the reason before the detail says it already."""
_REJECTED: Final = fwk.unresolvable("node(s) had untolerated taint(s)")

_TaintLookup: TypeAlias = Lookup[tuple[Taint, ...], np.int64]


def _soft_tolerations(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    return tuple(toleration for toleration in tolerations if toleration.effect in ("", _PREFER_NO_SCHEDULE))


def _untolerated_preferences(soft_tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> int:
    return sum(taint.effect == _PREFER_NO_SCHEDULE and not is_tolerated(soft_tolerations, taint) for taint in taints)


@once_per_spec
def _repelled_lookup(spec: PodSpec) -> _TaintLookup:
    tolerations = spec.tolerations
    return Lookup(lambda taints: is_repelled(tolerations, taints), np.int64)


@once_per_spec
def _preference_lookup(spec: PodSpec) -> _TaintLookup:
    tolerations = _soft_tolerations(spec.tolerations)
    return Lookup(lambda taints: _untolerated_preferences(tolerations, taints), np.int64)


class TaintToleration(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
):
    """Rejects nodes with taints that the pod does not tolerate, and prefers those with fewer soft ones."""

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return success: upstream runs the plugin here for the sake of an alpha gate."""
        return None, None

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes with an untolerated taint."""
        is_repelled_by_set = _repelled_lookup(pod.spec).over(snapshot.taint_sets)
        if not is_repelled_by_set.any():
            return None
        verdicts: IntArray = is_repelled_by_set.take(snapshot.taint_set.take(rows))
        return verdicts if verdicts.any() else None

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status of the only verdict."""
        return _REJECTED

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        return _REJECTED if is_repelled(pod.spec.tolerations, node.node.spec.taints) else None

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return the first taint of each node that the pod does not tolerate, as upstream logs it."""
        tolerations, counts_by_text = pod.spec.tolerations, dict[str, int]()
        counts = np.bincount(snapshot.taint_set.take(rows))
        for number in np.argsort(-counts, kind="stable")[:_SETS_TOLD_MAX].tolist():
            count = int(counts[number])
            taints = (taint for taint in snapshot.taint_sets[number] if is_repelled(tolerations, (taint,)))
            if count and (first := next(taints, None)) is not None:
                text = f"{DETAIL_PREFIX}{taint_text(first)}"
                counts_by_text[text] = counts_by_text.get(text, 0) + count
        return counts_by_text

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Prepare scoring without ever returning Skip: without soft taints every node gets the full score, which
        counts in the total.
        """
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the number of untolerated soft taints."""
        untolerated_counts = _preference_lookup(pod.spec).over(snapshot.taint_sets)
        if not untolerated_counts.any():
            return np.zeros(len(rows), np.int64)
        scores: IntArray = untolerated_counts.take(snapshot.taint_set.take(rows))
        return scores

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the number of untolerated soft taints."""
        return _untolerated_preferences(_soft_tolerations(pod.spec.tolerations), node.node.spec.taints)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Invert the counts, so that fewer taints score higher."""
        return default_normalize(scores, reverse=True)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's taints."""
        return fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's taints."""
        return fwk.Scope.NODE

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register nodes that are added or lose taints, and tolerations that are added to the pod."""
        return taint_events(self.handle.release.events, self.after_node_change, self.after_toleration_change)

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if the pod tolerates the node's taints now and did not before."""
        tolerations = pod.spec.tolerations
        if is_repelled(tolerations, new.spec.taints):
            return fwk.QueueingHint.SKIP
        return queue_if(old is None or is_repelled(tolerations, old.spec.taints))

    def after_toleration_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if the event is about the pod itself."""
        return queue_if(is_about(pod, new))
