"""InterPodAffinity: pods are placed near other pods or away from them, by their own terms and those of existing pods.

Runs at: PreFilter (with AddPod and RemovePod), Filter (required terms), PreScore, Score (preferred terms, and required
ones of existing pods), NormalizeScores.
Verdict: UnschedulableAndUnresolvable if the pod's required affinity is not met, or a term is invalid; Unschedulable if
    its anti-affinity, or that of an existing pod, rejects the node.
Requeue: a pod is added, deleted or changes labels so that the terms may be met; a node is added or changes topology
    labels; the pod's own labels change.
Cost: one sum by topology value for each term of the pod, and each distinct term of existing pods that selects it, over
    counts that the snapshot keeps. It does not depend on the number of pods.
Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity, v1.36.2.
Differs: the message about an invalid term names the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.affinity_terms import PodTerms, pod_terms
from podium.cluster.existing_terms import IncomingPod
from podium.config.args import InterPodAffinityArgs
from podium.framework import contract as fwk
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.selectors import Selector
from podium.objects.workloads import Namespace
from podium.plugins.inter_pod_affinity.counts import (
    NOT_NEAR,
    TOO_NEAR,
    UNWELCOME,
    IncomingTerm,
    PreferredAffinity,
    RequiredAffinity,
    incoming_term,
)
from podium.plugins.shared.hints import is_about, occupies_node, pod_events, queue_if

_REJECTED: Final = {
    NOT_NEAR: fwk.unresolvable("node(s) didn't match pod affinity rules"),
    TOO_NEAR: fwk.unschedulable("node(s) didn't match pod anti-affinity rules"),
    UNWELCOME: fwk.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
}


@dataclass(frozen=True, slots=True)
class _ListedNamespaces:
    lister: fwk.Lister[Namespace]

    def selected_by(self, selector: Selector) -> frozenset[str]:
        if selector.nothing:
            return frozenset()
        return frozenset(
            namespace.key for namespace in self.lister.list() if selector.matches(namespace.metadata.labels)
        )

    def incoming_pod(self, pod: Pod) -> IncomingPod:
        """Return the incoming pod as existing pods' terms see it. An unknown namespace has no labels."""
        meta = pod.metadata
        namespace = self.lister.get(meta.namespace)
        return IncomingPod(meta.namespace, meta.labels, {} if namespace is None else namespace.metadata.labels)


class _TriedOut(fwk.PreFilterExtensions):
    """Updates the counts when a dry run adds or removes a pod."""

    def add_pod(self, state: fwk.CycleState, pod: Pod, pod_to_add: Pod, node: NodeInfo) -> fwk.Status | None:
        """Count the added pod."""
        state.read(RequiredAffinity).add(pod_to_add, node.row, 1)
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, pod_to_remove: Pod, node: NodeInfo) -> fwk.Status | None:
        """Stop counting the removed pod."""
        state.read(RequiredAffinity).add(pod_to_remove, node.row, -1)
        return None


class InterPodAffinity(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
):
    """Rejects and scores nodes by the pods in the same topology."""

    def __init__(self, args: InterPodAffinityArgs, handle: fwk.Handle) -> None:
        self._events = handle.release.events
        self._lists_namespaces = handle.release.lists_namespaces
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_preferences_of_others = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = _ListedNamespaces(handle.lister(resource_types.NAMESPACES))
        self._tried_out = _TriedOut()

    # ------------------------------------------------------------ filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Count pods and terms by topology.

        Return Skip if there are no required terms, a rejection if a term is invalid.
        """
        terms = pod_terms(pod)
        if terms.errors:
            return None, fwk.unresolvable(f"parsing pod: {_error_text(terms.errors)}")
        if not terms.for_other_pods and not snapshot.existing_terms.may_have_any:
            return None, fwk.SKIP
        affinity = RequiredAffinity(
            pod,
            self._namespaces.incoming_pod(pod),
            self._incoming(terms.required_affinity),
            self._incoming(terms.required_anti_affinity),
            snapshot,
        )
        if affinity.is_empty:
            return None, fwk.SKIP
        state.write(affinity)
        return None, None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return the extensions that update the counts."""
        return self._tried_out

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return 1: affinity not met; 2: anti-affinity violated; 3: an existing pod's anti-affinity rejects the pod."""
        return state.read(RequiredAffinity).verdicts(rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return the status for the kind of term that is not met."""
        return _REJECTED[verdict]

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, UnschedulableAndUnresolvable or Unschedulable."""
        return _REJECTED.get(state.read(RequiredAffinity).verdict(node))

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Sum up weights by topology. Return Skip if no term selects any pod."""
        terms = pod_terms(pod)
        if self._ignores_preferences_of_others and not _has_preferences(pod):
            return fwk.SKIP
        if terms.errors:
            return fwk.error_status(f"failed to parse pod: {_error_text(terms.errors)}")
        if not terms.for_other_pods and not snapshot.existing_terms.may_have_any:
            return fwk.SKIP
        affinity = PreferredAffinity(
            self._namespaces.incoming_pod(pod), self._preferences(terms), self._hard_weight, snapshot
        )
        if not affinity.counts_anything:
            return fwk.SKIP
        state.write(affinity)
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the sum of the weights. It is negative if anti-affinity prevails."""
        return state.read(PreferredAffinity).score(rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return the sum of the weights. It is negative if anti-affinity prevails."""
        return state.read(PreferredAffinity).score_node(node.row)

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale linearly from the lowest sum (0) to the highest (MAX_NODE_SCORE); all 0 if they are equal."""
        least, greatest = int(scores.min()), int(scores.max())
        if least == greatest:
            return np.zeros(len(scores), np.int64)
        return (float(fwk.MAX_NODE_SCORE) * ((scores - least) / float(greatest - least))).astype(np.int64)

    def _incoming(self, terms: Iterable[AffinityTerm]) -> tuple[IncomingTerm, ...]:
        return tuple(self._incoming_term(term) for term in terms)

    def _incoming_term(self, term: AffinityTerm) -> IncomingTerm:
        return incoming_term(term, self._namespaces, lists_namespaces=self._lists_namespaces)

    def _preferences(self, terms: PodTerms) -> list[tuple[IncomingTerm, int]]:
        return [(self._incoming_term(weighted_term.term), weighted_term.weight) for weighted_term in terms.preferred]

    # ------------------------------------------------------------ requeueing

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods that are added, deleted or change labels; nodes that are added or change labels."""
        relabelled = fwk.ActionType.UPDATE_POD_LABEL
        of_assigned = fwk.ActionType.ADD | fwk.ActionType.DELETE | relabelled
        return (
            *pod_events(self._events, of_assigned, relabelled, self.after_pod_change, fwk.HintScope.LABELS),
            fwk.on(
                fwk.EventResource.NODE,
                fwk.ActionType.ADD,
                fwk.ActionType.UPDATE_NODE_LABEL,
                hint=self.after_node_change,
                scope=fwk.HintScope.SPEC,
            ),
        )

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> fwk.QueueingHint:
        """Queue if a pod that affinity selects appears, or a pod on either side of anti-affinity goes."""
        if old is not None and is_about(pod, new):
            return fwk.QueueingHint.QUEUE
        if any(state is not None and not occupies_node(state) for state in (old, new)):
            return fwk.QueueingHint.SKIP
        terms = _valid_terms(pod)
        near_terms, far_terms = terms.required_affinity, terms.required_anti_affinity
        keep_apart = _any_means if self._events.match_any_anti_affinity else _all_mean
        if old is None:
            return queue_if(new is not None and _all_mean(near_terms, new))
        if new is None:
            return queue_if(keep_apart(far_terms, old) or keep_apart(_valid_terms(old).required_anti_affinity, pod))
        comes_near = not _all_mean(near_terms, old) and _all_mean(near_terms, new)
        return queue_if(comes_near or (keep_apart(far_terms, old) and not keep_apart(far_terms, new)))

    def after_node_change(self, pod: Pod, old: Node | None, new: Node) -> fwk.QueueingHint:
        """Queue if a node is added to, or moves within, a topology that the terms name."""
        terms = _valid_terms(pod)
        near_keys = [term.topology_key for term in terms.required_affinity]
        far_keys = [term.topology_key for term in terms.required_anti_affinity]
        labels = new.metadata.labels
        if old is None:
            return queue_if(bool(far_keys) or any(key in labels for key in near_keys))
        old_labels = old.metadata.labels
        moved_in = any(key in labels and old_labels.get(key) != labels[key] for key in near_keys)
        moved_out = any(key in old_labels and old_labels[key] != labels.get(key) for key in far_keys)
        return queue_if(moved_in or moved_out)


def _has_preferences(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    rules = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return any(rule_set is not None and rule_set.preferred for rule_set in rules)


def _error_text(errors: tuple[str, ...]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _valid_terms(pod: Pod) -> PodTerms:
    """Return the terms of the pod.

    Raises:
        ValueError: a term is invalid.
    """
    terms = pod_terms(pod)
    if terms.errors:
        raise ValueError(_error_text(terms.errors))
    return terms


def _all_mean(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Return whether there are terms and each selects the pod. As upstream, namespace selectors are not resolved."""
    meta = pod.metadata
    return bool(terms) and all(term.matches(meta.namespace, meta.labels, {}) for term in terms)


def _any_means(terms: tuple[AffinityTerm, ...], pod: Pod) -> bool:
    """Return whether a term selects the pod; namespace selectors are not resolved, as in `_all_mean`."""
    return any(term.matches(pod.metadata.namespace, pod.metadata.labels, {}) for term in terms)
