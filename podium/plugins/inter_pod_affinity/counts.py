"""The affinity terms between an incoming pod and the existing pods, counted by topology.

Owns the state of InterPodAffinity within one attempt. Never iterates over existing pods: the snapshot counts the pods
that a term selects, and the existing pods' terms that select the incoming pod.

Source: kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go and scoring.go, v1.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.affinity_term import AffinityTerm
from podium.cluster.affinity_terms import TermKind, pod_terms
from podium.cluster.existing_terms import IncomingPod
from podium.cluster.labels import ABSENT
from podium.cluster.pod_counts import PodQuery
from podium.objects.core import Pod
from podium.objects.selectors import Selector, join_selectors
from podium.plugins.shared.topology_counts import TopologyCounts

NOT_NEAR, TOO_NEAR, UNWELCOME = 1, 2, 3
"""Verdicts, in the order in which they are checked."""

_NO_LABELS: Final[Mapping[str, str]] = {}
_MINDING: Final = (TermKind.REQUIRED_ANTI_AFFINITY,)
_SCORING_KINDS: Final = (TermKind.PREFERRED_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
_ALL_SCORING_KINDS: Final = (*_SCORING_KINDS, TermKind.REQUIRED_AFFINITY)


class Namespaces(Protocol):
    """Looks up namespaces by their labels."""

    def selected_by(self, selector: Selector) -> frozenset[str]:
        """Return the names of the namespaces whose labels match."""


# ---------------------------------------------------------------- terms of the incoming pod


@dataclass(frozen=True, slots=True)
class IncomingTerm:
    """A term of the incoming pod, with the query for the pods that it selects."""

    topology_key: str
    query: PodQuery

    def means(self, pod: Pod) -> bool:
        """Return whether the term selects the pod."""
        return self.query.takes(pod.metadata.namespace, pod.metadata.labels, pod.is_terminating)


def incoming_term(term: AffinityTerm, namespaces: Namespaces, *, lists_namespaces: bool) -> IncomingTerm:
    """Build the query for a term of an incoming pod: an empty selector selects every namespace.

    Args:
        lists_namespaces: the selected namespaces are added to the named ones. Older releases also keep the selector and
            later match it against an empty set of labels: one that only requires labels to be absent selects every
            namespace, too.
    """
    namespaces_by_name: frozenset[str] | None = None
    selector = term.namespace_selector
    if not (selector.everything if lists_namespaces else selector.matches(_NO_LABELS)):
        namespaces_by_name = term.namespaces | namespaces.selected_by(term.namespace_selector)
    return IncomingTerm(term.topology_key, PodQuery(namespaces_by_name, term.selector))


def _joint_query(terms: tuple[IncomingTerm, ...]) -> PodQuery:
    """Return the query for the pods that all the terms select."""
    if len(terms) == 1:
        return terms[0].query
    namespaces: frozenset[str] | None = None
    for term in terms:
        term_namespaces = term.query.namespaces
        if term_namespaces is not None:
            namespaces = term_namespaces if namespaces is None else namespaces & term_namespaces
    return PodQuery(namespaces, join_selectors([term.query.selector for term in terms]))


# ---------------------------------------------------------------- required terms


class RequiredAffinity:
    """The counts for the required terms of one attempt, updated by dry runs.

    `near` counts the pods that all affinity terms select, `far` those that each anti-affinity term selects, `unwelcome`
    the anti-affinity terms of existing pods that select the incoming one.
    """

    __slots__ = ("_far", "_far_terms", "_incoming_pod", "_near", "_near_terms", "_suits_itself", "_unwelcome")

    def __init__(
        self,
        pod: Pod,
        incoming_pod: IncomingPod,
        near_terms: tuple[IncomingTerm, ...],
        far_terms: tuple[IncomingTerm, ...],
        snapshot: Snapshot,
    ) -> None:
        self._incoming_pod = incoming_pod
        self._near_terms, self._far_terms = near_terms, far_terms
        self._suits_itself = all(term.means(pod) for term in near_terms)
        self._near, self._far, self._unwelcome = (TopologyCounts(snapshot) for _ in range(3))
        count_by_value, column = snapshot.pod_counts.matching_by_value, snapshot.label_column
        if near_terms:
            query = _joint_query(near_terms)
            for key in {term.topology_key for term in near_terms}:
                self._near.add_values(key, count_by_value(query, column(key)))
        for term in far_terms:
            self._far.add_values(term.topology_key, count_by_value(term.query, column(term.topology_key)))
        for pod_term, by_value in snapshot.existing_terms.matching_by_value(incoming_pod, _MINDING, column):
            self._unwelcome.add_values(pod_term.term.topology_key, by_value)

    @property
    def is_empty(self) -> bool:
        """Return whether there are no required terms on either side."""
        return not self._near_terms and not self._far_terms and self._unwelcome.is_empty

    def clone(self) -> RequiredAffinity:
        """Return an independent copy."""
        twin = RequiredAffinity.__new__(RequiredAffinity)
        twin._incoming_pod, twin._suits_itself = self._incoming_pod, self._suits_itself
        twin._near_terms, twin._far_terms = self._near_terms, self._far_terms
        twin._near, twin._far, twin._unwelcome = self._near.clone(), self._far.clone(), self._unwelcome.clone()
        return twin

    def add(self, other_pod: Pod, row: int, number: int) -> None:
        """Count a pod that a dry run adds to the row (1) or removes from it (-1)."""
        for term in pod_terms(other_pod).required_anti_affinity:
            if self._incoming_pod.is_selected_by(term):
                self._unwelcome.add_node(term.topology_key, row, number)
        if self._near_terms and all(term.means(other_pod) for term in self._near_terms):
            for key in {term.topology_key for term in self._near_terms}:
                self._near.add_node(key, row, number)
        for incoming in self._far_terms:
            if incoming.means(other_pod):
                self._far.add_node(incoming.topology_key, row, number)

    def verdicts(self, rows: Rows) -> IntArray | None:
        """Return the first verdict on each row, 0 if all terms are met; None if every row passes.

        Shape: one entry per row of `rows`.
        """
        verdicts: IntArray | None = None
        for counts, verdict in ((self._unwelcome, UNWELCOME), (self._far, TOO_NEAR)):
            for key in counts.keys:
                if (is_counted := counts.are_counted(key, rows)) is not None:
                    verdicts = np.zeros(len(rows), np.int64) if verdicts is None else verdicts
                    verdicts[is_counted] = verdict
        is_first = self._is_first_of_its_kind()
        for term in self._near_terms:
            key = term.topology_key
            is_near = self._near.has_label(key, rows) if is_first else self._near.are_counted(key, rows)
            if is_near is None:
                return np.full(len(rows), NOT_NEAR, np.int64)
            if np.count_nonzero(is_near) < len(rows):
                verdicts = np.zeros(len(rows), np.int64) if verdicts is None else verdicts
                verdicts[~is_near] = NOT_NEAR
        return verdicts if verdicts is not None and np.count_nonzero(verdicts) else None

    def verdict(self, node: NodeInfo) -> int:
        """Return the entry of `verdicts` for one node."""
        row = node.row
        is_first = self._is_first_of_its_kind()
        for term in self._near_terms:
            key = term.topology_key
            if not (key in node.labels if is_first else self._near.at_node(key, row) > 0):
                return NOT_NEAR
        if any(self._far.at_node(key, row) > 0 for key in self._far.keys):
            return TOO_NEAR
        return UNWELCOME if any(self._unwelcome.at_node(key, row) > 0 for key in self._unwelcome.keys) else 0

    def _is_first_of_its_kind(self) -> bool:
        """Return whether affinity selects the pod itself and no existing pod: then any node with the labels will do."""
        return bool(self._near_terms) and self._suits_itself and self._near.is_empty


# ---------------------------------------------------------------- preferred terms


class PreferredAffinity:
    """The weights of one attempt: of the incoming pod's preferred terms, and of existing pods' terms that select it."""

    __slots__ = ("_weights", "counts_anything")

    def __init__(
        self,
        incoming_pod: IncomingPod,
        preferences: Iterable[tuple[IncomingTerm, int]],
        hard_pod_affinity_weight: int,
        snapshot: Snapshot,
    ) -> None:
        count_by_value, column = snapshot.pod_counts.matching_by_value, snapshot.label_column
        weighted_counts = [
            (term.topology_key, count_by_value(term.query, column(term.topology_key)), weight)
            for term, weight in preferences
        ]
        kinds = _SCORING_KINDS if not hard_pod_affinity_weight else _ALL_SCORING_KINDS
        for pod_term, by_value in snapshot.existing_terms.matching_by_value(incoming_pod, kinds, column):
            weight = hard_pod_affinity_weight if pod_term.kind is TermKind.REQUIRED_AFFINITY else pod_term.weight
            weighted_counts.append((pod_term.term.topology_key, by_value, weight))
        self._weights = TopologyCounts(snapshot)
        for key, by_value, weight in weighted_counts:
            self._weights.add_values(key, by_value * weight)
        # Weights may cancel each other out; the nodes are scored all the same if any term selected a pod.
        self.counts_anything = any(by_value[ABSENT + 1 :].any() for _, by_value, _ in weighted_counts)

    def score(self, rows: Rows) -> IntArray:
        """Return the summed weights of each row. Shape: one entry per row of `rows`."""
        scores = np.zeros(len(rows), np.int64)
        for key in self._weights.keys:
            scores += self._weights.at(key, rows)
        return scores

    def score_node(self, row: int) -> int:
        """Return the summed weights of one row."""
        return sum(self._weights.at_node(key, row) for key in self._weights.keys)
