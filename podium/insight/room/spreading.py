"""Where the hard topology spread constraints of one pod let it go while others move.

A move takes a counted pod from one domain to another: the skew may shrink since the pod's own domain loses a pod, or
since the smallest domain gets one. Owns the counts after moves; which pods and nodes count, the plugin decides.

Example: zones a, b and c have 2, 1 and 1 pods, maxSkew is 1, and only a has room for the pod. 2 + 1 - 1 is too much
there. Once a pod has moved from a to b, a has 1, and the pod fits: 1 + 1 - 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np

from podium.cluster import Snapshot
from podium.cluster.labels import ABSENT
from podium.cluster.snapshot import BoolArray, IntArray
from podium.objects.core import Pod
from podium.objects.selectors import Selector
from podium.plugins.pod_topology_spread.counts import Domains, HardSpread

SPREAD: Final = "PodTopologySpread"
GONE: Final = -1
"""In a move: the pod has left its node, and is nowhere yet."""

Move: TypeAlias = tuple[int, int]
"""The index of a movable pod, and the row that it goes to, or `GONE`."""


class Spread:
    """The constraints of one pod.

    Args:
        movable: the pods that may be moved, each with the row of its node.

    Attributes:
        labelled: by row, whether the node has the label of each constraint.
    """

    def __init__(self, pod: Pod, spread: HardSpread, snapshot: Snapshot, movable: Sequence[tuple[Pod, int]]) -> None:
        self.namespace = pod.metadata.namespace
        self._domains = spread.domains
        self._movable = movable
        columns = [domains.column.ids for domains in self._domains]
        self.labelled: BoolArray = np.logical_and.reduce([ids != ABSENT for ids in columns])
        everywhere = np.ones(len(snapshot.nodes), np.bool_)
        # By constraint and row: the id of the domain where a pod on the node counts; ABSENT where it does not.
        self._places = np.array(
            [
                np.where(everywhere if domains.is_counted is None else domains.is_counted, domains.column.ids, ABSENT)
                for domains in self._domains
            ]
        )

    @property
    def selectors(self) -> Sequence[Selector]:
        """The selectors of the pods that count."""
        return [domains.constraint.selector for domains in self._domains]

    def counts_pod(self, index: int) -> bool:
        """Return whether any of the constraints counts the movable pod."""
        return any(self._selects(domains, index) for domains in self._domains)

    @cached_property
    def counted_pods(self) -> Sequence[int]:
        """The movable pods that any of the constraints counts, by their index."""
        return [index for index in range(len(self._movable)) if self.counts_pod(index)]

    def place(self, row: int) -> tuple[int, ...]:
        """Return the domains in which a pod on the row counts: equal for rows that make no difference."""
        return tuple(self._places[:, row].tolist())

    def rows_after(self, moves: Iterable[Move], further: int = 0) -> BoolArray:
        """Return on which rows the constraints allow the pod.

        Args:
            moves: what has moved.
            further: so many more moves, of any pods to anywhere; rows that these may open are allowed, too.
        """
        rows = self.labelled.copy()
        moves = tuple(moves)
        for domains, places in zip(self._domains, self._places, strict=True):
            counts = self._counts_after(domains, places, moves)
            rows &= self._is_allowed(domains, counts, further).take(domains.column.ids)
        return rows

    def allows(self, row: int, moves: Iterable[Move], further: int = 0) -> bool:
        """Return whether the constraints allow the pod on the row. Args: as `rows_after`."""
        return bool(self.rows_after(moves, further)[row])

    def _selects(self, domains: Domains, index: int) -> bool:
        selector, meta = domains.constraint.selector, self._movable[index][0].metadata
        # One that selects everything counts nothing, as in the plugin.
        return meta.namespace == self.namespace and not selector.everything and selector.matches(meta.labels)

    def _counts_after(self, domains: Domains, places: IntArray, moves: Sequence[Move]) -> IntArray:
        counts = domains.counts.copy()
        for index, target in moves:
            if self._selects(domains, index):
                counts[places[self._movable[index][1]]] -= 1
                if target != GONE:
                    counts[places[target]] += 1
        counts[ABSENT] = 0
        return counts

    def _is_allowed(self, domains: Domains, counts: IntArray, further: int) -> BoolArray:
        """Return by value id whether the skew is small enough."""
        smallest = 0 if domains.has_too_few else _smallest_after(counts[domains.is_domain], further)
        count_max = domains.constraint.max_skew + smallest - domains.self_match
        return np.asarray(counts - np.minimum(counts, further) <= count_max)


def _smallest_after(counts: IntArray, further: int) -> int:
    """Return the most pods that the smallest domain may have once so many pods have come."""
    if not len(counts):
        return 2**31 - 1
    counts_in_order = np.sort(counts)
    levels = (np.cumsum(counts_in_order) + further) // np.arange(1, len(counts_in_order) + 1)
    return int(levels.min())
