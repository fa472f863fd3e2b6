"""NodeAffinity: pods select nodes by label and by name.

Runs at: PreFilter, Filter (`nodeSelector`, required terms), PreScore, Score (preferred terms), NormalizeScores.
Verdict: UnschedulableAndUnresolvable; an Error from PreScore if a preferred term is invalid.
Requeue: a matching node is added, or a node begins to match.
Cost: each requirement is evaluated for each distinct label value once per pod spec; then one gather per requirement.
Source: kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go, v1.36.2.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.matching.node_selectors import (
    RowSelector,
    WeightedRowTerm,
    required_terms,
    row_selector,
    weighted_row_terms,
)
from podium.config.args import NodeAffinityArgs
from podium.framework import contract as fwk
from podium.objects.affinity import NodeAffinity as AffinityRules
from podium.objects.core import Node, Pod, PodSpec, once_per_spec
from podium.objects.errors import FieldError
from podium.objects.selectors import compile_node_selector, compile_preferred_terms, node_names
from podium.plugins.shared.hints import queue_if
from podium.plugins.shared.normalize import default_normalize

_CONFLICT: Final = fwk.unresolvable("pod affinity terms conflict")
_NOT_ENFORCED, _NOT_SELECTED = 1, 2
_REJECTED: Final = {
    _NOT_ENFORCED: fwk.unresolvable("node(s) didn't match scheduler-enforced node affinity"),
    _NOT_SELECTED: fwk.unresolvable("node(s) didn't match Pod's node affinity/selector"),
}

_demanded = once_per_spec(row_selector)


@once_per_spec
def _named_nodes(spec: PodSpec) -> frozenset[str] | None:
    return node_names(required_terms(spec))


@once_per_spec
def _preferences(spec: PodSpec) -> tuple[WeightedRowTerm, ...]:
    affinity = spec.affinity
    rules = affinity.node_affinity if affinity is not None else None
    return weighted_row_terms(compile_preferred_terms(rules.preferred if rules is not None else ()))


class NodeAffinity(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
):
    """Matches nodes against the pod's affinity, and against the affinity that the configuration adds to every pod.

    Attributes:
        added_terms: the required affinity that the configuration adds.
    """

    def __init__(self, args: NodeAffinityArgs, handle: fwk.Handle) -> None:
        added_rules = msgspec.convert(args.added_affinity or {}, AffinityRules)
        self.added_terms = added_rules.required
        self._enforced = (
            None if added_rules.required is None else RowSelector({}, compile_node_selector(added_rules.required))
        )
        self._added_preferences = weighted_row_terms(compile_preferred_terms(added_rules.preferred))
        self._prefers_for_all = bool(added_rules.preferred)

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Skip if there is no required affinity; narrow the search to named nodes if every term names some."""
        spec = pod.spec
        if self._enforced is None and _demanded(spec).everything:
            return None, fwk.SKIP
        names = _named_nodes(spec)
        if names is None:
            return None, None
        return (fwk.PreFilterResult(names), None) if names else (None, _CONFLICT)

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return verdict 1 for nodes that the configuration's affinity rejects, 2 for those that the pod's rejects."""
        is_selected = _demanded(pod.spec).matching(snapshot, rows)
        if self._enforced is None:
            return None if is_selected.all() else np.where(is_selected, 0, _NOT_SELECTED)
        is_enforced = self._enforced.matching(snapshot, rows)
        return np.where(is_enforced, np.where(is_selected, 0, _NOT_SELECTED), _NOT_ENFORCED)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status for the affinity that the node does not match."""
        return _REJECTED[verdict]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        if self._enforced is not None and not self._enforced.matches(node.labels, node.name):
            return _REJECTED[_NOT_ENFORCED]
        return None if _demanded(pod.spec).matches(node.labels, node.name) else _REJECTED[_NOT_SELECTED]

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Return Skip if there are no preferred terms, Error if one is invalid."""
        affinity = pod.spec.affinity
        rules = affinity.node_affinity if affinity is not None else None
        if not self._prefers_for_all and (rules is None or not rules.preferred):
            return fwk.SKIP
        try:
            _preferences(pod.spec)
        except FieldError as error:
            return fwk.error_status(error)
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the summed weights of the preferred terms that match."""
        scores = np.zeros(len(rows), np.int64)
        for preference in self._preferences_for(pod):
            scores += preference.weight * preference.term.matching(snapshot, rows)
        return scores

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the summed weights of the preferred terms that match."""
        labels, name = node.labels, node.name
        return sum(
            preference.weight for preference in self._preferences_for(pod) if preference.term.matches(labels, name)
        )

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale so that the highest sum of weights becomes MAX_NODE_SCORE."""
        return default_normalize(scores)

    def _preferences_for(self, pod: Pod) -> tuple[WeightedRowTerm, ...]:
        return (*_preferences(pod.spec), *self._added_preferences)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's labels and name."""
        return fwk.Scope.NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the answer depends on the node's labels and name."""
        return fwk.Scope.NODE

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register nodes that are added or change labels."""
        return (
            fwk.on(
                fwk.EventResource.NODE,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE_NODE_LABEL,
                hint=self.after_node_change,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if the node matches now, and did not match the pod's own affinity before."""
        selector = _demanded(pod.spec)
        if self._enforced is not None and not self._enforced.matches(new.metadata.labels, new.name):
            return fwk.QueueingHint.SKIP
        if not selector.matches(new.metadata.labels, new.name):
            return fwk.QueueingHint.SKIP
        return queue_if(old is None or not selector.matches(old.metadata.labels, old.name))
