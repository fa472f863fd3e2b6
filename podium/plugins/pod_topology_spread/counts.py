"""Pods counted by topology domain, for hard and for soft spread constraints.

Owns the state of PodTopologySpread within one attempt. Never looks at pods one by one: counts by row come from the
snapshot and are summed by the ids of a label column.

A domain is a value of the topology label, such as a zone (KEP-895). For each constraint the path is: the snapshot's
count of selected pods by node, a mask of the nodes that take part, the sum by value id, and from the sums one verdict
or score by value id, which nodes look up by their own id. So the cost depends on nodes and domains, never on pods.

Hard constraints compare each domain with the smallest one. The pod may go where

    pods in the domain + 1 if the pod selects itself - pods in the smallest domain <= maxSkew

Example: zones a, b and c have 3, 1 and 0 selected pods, maxSkew is 1, and the pod selects itself. The smallest domain
has 0 pods, so only domains with at most 1 + 0 - 1 = 0 pods fit: zone c. If all nodes of c have a taint that the pod
does not tolerate, the pod fits nowhere, because taints are ignored by default: c still counts as a domain that could
take it. `nodeTaintsPolicy: Honor` (KEP-3094) leaves c out. The minimum is then 1, and b fits with at most 1 + 1 - 1 = 1
pods. With `minDomains: 3` (KEP-3022), a and b are too few domains and the minimum counts as 0: the pod waits, so that a
cluster autoscaler adds a node in a third zone.

Soft constraints only score. Each adds its domain's count times log(domains + 2), plus maxSkew - 1, and fewer is better.
Without the logarithm a constraint on hosts, of which each has few pods, would not count beside one on zones, of which
each has many; maxSkew makes a difference between domains weigh less when it is large.

What may surprise:

- A node without the label is UnschedulableAndUnresolvable: no eviction adds a label.
- With several constraints, a node takes part only if it has the labels of all of them. Only soft system defaults (hosts
  and zones) do without: a cluster without zones is still spread over its hosts.
- Terminating pods do not count, since they leave room soon; those that a dry run adds or removes do, as upstream.
- Soft constraints on hosts count by node and apply no policy, since every node is a domain of its own.

Source: kubernetes pkg/scheduler/framework/plugins/podtopologyspread/filtering.go and scoring.go, v1.36.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.labels import ABSENT, LabelColumn
from podium.cluster.pod_counts import PodQuery
from podium.cluster.snapshot import BoolArray
from podium.cluster.value_sums import sum_by_value
from podium.objects.core import Pod
from podium.plugins.pod_topology_spread.constraints import HOSTNAME, SpreadConstraint

NO_LABEL, TOO_SKEWED = 1, 2
"""Verdicts."""

# Upstream's MaxInt32: without any domain no node violates the constraint.
_NO_DOMAINS: Final = 2**31 - 1
_FEW: Final = 64
"""Up to so many values, as zones have, a loop over a list is cheaper than operations on an array."""


def _query(pod: Pod, constraint: SpreadConstraint) -> PodQuery:
    return PodQuery(frozenset((pod.metadata.namespace,)), constraint.selector, include_terminating=False)


def _matching(pod: Pod, constraint: SpreadConstraint, snapshot: Snapshot) -> IntArray:
    """Count pods by row. A selector that matches everything counts no pod, as upstream."""
    if constraint.selector.everything:
        return np.zeros(len(snapshot.nodes), np.int64)
    return snapshot.pod_counts.matching(_query(pod, constraint))


def _matching_by_value(
    pod: Pod, constraint: SpreadConstraint, column: LabelColumn, snapshot: Snapshot, is_counted: BoolArray | None
) -> IntArray:
    """Count pods by value id on the nodes that are counted; return a new array."""
    if is_counted is not None:
        # Nodes that the pod's own affinity or the taints exclude do not count, so the sums cannot be the cached ones.
        return sum_by_value(column, _matching(pod, constraint, snapshot) * is_counted)
    if constraint.selector.everything:
        return np.zeros(len(column.values), np.int64)
    # Copied, because dry runs add to it.
    return snapshot.pod_counts.matching_by_value(_query(pod, constraint), column).copy()


def _in_all_topologies(columns: Sequence[LabelColumn], snapshot: Snapshot) -> BoolArray | None:
    """Return by row whether the node has all of the labels; None if every node has them."""
    if all(column.labelled_count() == len(snapshot) for column in columns):
        return None
    present: BoolArray = columns[0].ids != ABSENT
    for column in columns[1:]:
        present &= column.ids != ABSENT
    return present


def _both(left_mask: BoolArray | None, right_mask: BoolArray | None) -> BoolArray | None:
    if left_mask is None or right_mask is None:
        return right_mask if left_mask is None else left_mask
    return left_mask & right_mask


# ---------------------------------------------------------------- hard constraints


class Domains:
    """The domains of one hard constraint.

    Attributes:
        is_counted: by row, whether pods on the node count; None if they do on all.
        counts: int64 by value id of the label column.
        is_domain: by value id, whether a counted node has that value.
        is_on_all: whether every node has the label.
    """

    __slots__ = (
        "_domain_count",
        "_verdicts",
        "column",
        "constraint",
        "counts",
        "is_counted",
        "is_domain",
        "is_on_all",
        "self_match",
    )

    def __init__(
        self,
        constraint: SpreadConstraint,
        column: LabelColumn,
        is_counted: BoolArray | None,
        counts: IntArray,
        is_domain: BoolArray,
        *,
        is_on_all: bool,
        self_match: bool,
    ) -> None:
        self.constraint = constraint
        self.column = column
        self.is_counted = is_counted
        self.counts = counts
        self.is_domain = is_domain
        self.is_on_all = is_on_all
        self._domain_count = int(np.count_nonzero(is_domain))
        self.self_match = self_match
        self._verdicts: IntArray | None = None

    def verdicts(self) -> IntArray:
        """Return the constraint's verdict for nodes of each domain; under id 0 for nodes without the label.

        Shape: one entry per value id of the topology label.
        """
        if self._verdicts is None:
            # The pod itself counts in the domain that it would join.
            count_max = self.constraint.max_skew + self._minimum() - self.self_match
            if len(self.counts) > _FEW:
                self._verdicts = np.where(self.counts > count_max, TOO_SKEWED, 0)
            else:
                verdicts = [TOO_SKEWED if count > count_max else 0 for count in self.counts.tolist()]
                self._verdicts = np.array(verdicts, np.int64)
            self._verdicts[ABSENT] = NO_LABEL
        return self._verdicts

    def add(self, row: int, number: int) -> None:
        """Add `number` to the count of a row's domain."""
        self.counts[self.column.ids[row]] += number
        self._verdicts = None

    def clone(self) -> Domains:
        """Return an independent copy."""
        twin = Domains.__new__(Domains)
        for name in Domains.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.counts = self.counts.copy()
        return twin

    @property
    def has_too_few(self) -> bool:
        """True if there are fewer domains than `minDomains` says."""
        return self._domain_count < self.constraint.min_domains

    def _minimum(self) -> int:
        # KEP-3022: with too few domains the minimum is 0, so that pods spread to new ones.
        if self.has_too_few:
            return 0
        if not self._domain_count:
            return _NO_DOMAINS
        counts = self.counts[self.is_domain]
        return int(counts.min()) if len(counts) > _FEW else min(counts.tolist())


class HardSpread:
    """The hard constraints of one attempt with their counts, updated by dry runs."""

    __slots__ = ("domains",)

    def __init__(self, domains: tuple[Domains, ...]) -> None:
        self.domains = domains

    @classmethod
    def of(cls, pod: Pod, constraints: tuple[SpreadConstraint, ...], snapshot: Snapshot) -> HardSpread:
        """Count the pods in all domains of nodes that have the labels of all constraints."""
        columns = [snapshot.label_column(constraint.topology_key) for constraint in constraints]
        # With one constraint, nodes without its label are the nodes without a domain.
        in_all = _in_all_topologies(columns, snapshot) if len(columns) > 1 else None
        return cls(
            tuple(
                _count_domains(
                    pod, constraint, column, snapshot, _both(in_all, constraint.inclusion(pod.spec, snapshot))
                )
                for constraint, column in zip(constraints, columns, strict=True)
            )
        )

    def clone(self) -> HardSpread:
        """Return an independent copy."""
        return HardSpread(tuple(domains.clone() for domains in self.domains))

    def add(self, pod: Pod, other_pod: Pod, node: NodeInfo, number: int) -> None:
        """Count a pod that a dry run adds to the node (1) or removes from it (-1). Terminating pods count here, too."""
        if other_pod.metadata.namespace != pod.metadata.namespace:
            return
        labels = node.labels
        # Upstream counts only on nodes with the labels of all hard constraints.
        if any(domains.constraint.topology_key not in labels for domains in self.domains):
            return
        for domains in self.domains:
            constraint = domains.constraint
            if constraint.selector.matches(other_pod.metadata.labels) and constraint.includes(pod.spec, node.node):
                domains.add(node.row, number)

    def verdicts(self, rows: Rows) -> IntArray | None:
        """Return the verdict of the first constraint that each row violates, or 0; None if every row passes.

        Shape: one entry per row of `rows`.
        """
        verdicts: IntArray | None = None
        for domains in self.domains:
            by_domain = domains.verdicts()
            # No domain is too full, and every node is in one.
            is_open = np.count_nonzero(by_domain) == 1
            if is_open and domains.is_on_all:
                continue
            ids = domains.column.ids.take(rows)
            if is_open and ids.all():
                continue
            row_counts: IntArray = by_domain.take(ids)
            verdicts = row_counts if verdicts is None else np.where(verdicts, verdicts, row_counts)
        return verdicts

    def verdict(self, row: int) -> int:
        """Return the verdict on one row."""
        return next((code for domains in self.domains if (code := int(domains.verdicts()[domains.column.ids[row]]))), 0)


def _count_domains(
    pod: Pod, constraint: SpreadConstraint, column: LabelColumn, snapshot: Snapshot, is_counted: BoolArray | None
) -> Domains:
    counts = _matching_by_value(pod, constraint, column, snapshot, is_counted)
    is_domain = column.values_in_use()
    if is_counted is not None:
        is_domain = np.bincount(column.ids[is_counted], minlength=len(column.values)) > 0
        is_domain[ABSENT] = False
    counts[ABSENT] = 0
    return Domains(
        constraint,
        column,
        is_counted,
        counts,
        is_domain,
        is_on_all=column.labelled_count() == len(snapshot),
        self_match=constraint.selector.matches(pod.metadata.labels),
    )


# ---------------------------------------------------------------- soft constraints


@dataclass(frozen=True, slots=True)
class _SoftCounts:
    """One soft constraint; `counts` are by row for host names, otherwise by value id."""

    column: LabelColumn
    counts: IntArray
    by_row: bool
    weight: float
    allowance: int

    def score(self, rows: Rows) -> NDArray[np.floating[Any]]:
        """Return what the constraint adds to the score of each row; 0 for nodes without the label."""
        ids = self.column.ids.take(rows)
        scores = (self.counts.take(rows) if self.by_row else self.counts) * self.weight
        scores += self.allowance
        if self.by_row:
            return np.where(ids, scores, 0.0)
        scores[ABSENT] = 0.0
        return scores.take(ids)

    def score_node(self, row: int) -> float:
        """Score as `score`, for one row."""
        value_id = int(self.column.ids[row])
        if value_id == ABSENT:
            return 0.0
        return float(self.counts[row if self.by_row else value_id]) * self.weight + self.allowance


@dataclass(frozen=True, slots=True)
class SoftSpread:
    """The soft constraints of one attempt.

    Attributes:
        rows: the feasible nodes.
        is_ignored: by row, whether a feasible node lacks a required label; None if no node does.
    """

    parts: tuple[_SoftCounts, ...]
    rows: Rows
    is_ignored: BoolArray | None

    @classmethod
    def of(
        cls,
        pod: Pod,
        constraints: tuple[SpreadConstraint, ...],
        snapshot: Snapshot,
        rows: Rows,
        *,
        requires_all_labels: bool,
    ) -> SoftSpread:
        """Count the pods in the domains of the feasible nodes, over all nodes."""
        columns = [snapshot.label_column(constraint.topology_key) for constraint in constraints]
        in_all: BoolArray | None = None
        is_ignored: BoolArray | None = None
        scored_rows = rows
        # As upstream: nodes that lack a label score 0, and are not counted.
        if requires_all_labels:
            in_all = _in_all_topologies(columns, snapshot)
            if in_all is not None and not (has_all_labels := in_all.take(rows)).all():
                is_ignored, scored_rows = ~in_all, rows[has_all_labels]
        parts = (
            _count_host(pod, constraint, column, snapshot, len(scored_rows))
            if constraint.topology_key == HOSTNAME
            else _count_soft(
                pod, constraint, column, snapshot, scored_rows, _both(in_all, constraint.inclusion(pod.spec, snapshot))
            )
            for constraint, column in zip(constraints, columns, strict=True)
        )
        return cls(tuple(parts), rows, is_ignored)

    def score(self, rows: Rows) -> IntArray:
        """Return the weighted pod count of each row's domains; more is worse. Shape: one entry per row of `rows`."""
        first, *other_parts = self.parts
        total = first.score(rows)
        for part in other_parts:
            total += part.score(rows)
        # Rounded half up, like Go's math.Round for positive numbers.
        total += 0.5
        scores: IntArray = np.floor(total, out=total).astype(np.int64)
        if self.is_ignored is not None:
            scores[self.is_ignored.take(rows)] = 0
        return scores

    def score_node(self, node: NodeInfo) -> int:
        """Score as `score`, for one node."""
        if self.is_ignored is not None and self.is_ignored[node.row]:
            return 0
        total = sum(part.score_node(node.row) for part in self.parts)
        return math.floor(total + 0.5)

    def normalize(self, scores: IntArray) -> IntArray:
        """Return the scores of the feasible nodes, inverted and scaled to 0..100; ignored nodes get 0.

        Shape: as `scores`, one entry per feasible node.
        """
        is_scored = slice(None) if self.is_ignored is None else ~self.is_ignored.take(self.rows)
        judged_scores = scores[is_scored]
        normalized = np.zeros(len(scores), np.int64)
        highest = int(judged_scores.max(initial=0))
        # No pod anywhere: all nodes are equally good.
        if highest == 0:
            normalized[is_scored] = 100
        else:
            normalized[is_scored] = 100 * (highest + int(judged_scores.min()) - judged_scores) // highest
        return normalized


def _weight(domain_count: int) -> float:
    """Return the weight that compensates for having fewer pods in each domain if there are more domains."""
    return math.log(domain_count + 2)


def _count_host(
    pod: Pod, constraint: SpreadConstraint, column: LabelColumn, snapshot: Snapshot, domain_count: int
) -> _SoftCounts:
    # Each host is a domain of its own, so counts by row need no summing up.
    counts = _matching(pod, constraint, snapshot)
    return _SoftCounts(column, counts, True, _weight(domain_count), constraint.max_skew - 1)


def _count_soft(
    pod: Pod,
    constraint: SpreadConstraint,
    column: LabelColumn,
    snapshot: Snapshot,
    scored_rows: Rows,
    is_counted: BoolArray | None,
) -> _SoftCounts:
    counts = _matching_by_value(pod, constraint, column, snapshot, is_counted)
    is_domain = np.zeros(len(column.values), np.bool_)
    is_domain[column.ids.take(scored_rows)] = True
    domain_count = int(np.count_nonzero(is_domain))
    empty = column.id_of("")
    if empty is not None:
        # Upstream reads an absent label as the empty value, so both are one domain.
        counts[empty] += counts[ABSENT]
        domain_count -= bool(is_domain[empty] and is_domain[ABSENT])
    return _SoftCounts(column, counts, False, _weight(domain_count), constraint.max_skew - 1)
