"""Answers about nodes that are kept for pods of one spec, until the node or its topology changes.

Never kept are answers about forks of the snapshot, where nodes may differ.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.objects.core import Pod, PodSpec
from podium.plugins.contrib.node_resource_topology_match.caches import Topologies

_SPECS_KEPT: Final = 32
_CHANGES_AT_ONCE: Final = 8
"""So many nodes are answered again as soon as they have changed; of more, only those that are asked about."""


@dataclass(slots=True, eq=False)
class _Answers:
    """The answers for one spec by row, whether all nodes have one, and how far the logs of changes have been read."""

    spec: PodSpec
    values: IntArray
    is_known: NDArray[np.bool_]
    is_complete: bool
    nodes_read: int
    topologies_read: int


class KeptAnswers:
    """Whole numbers by pod spec and row.

    Args:
        answer: computes the number for a pod on a node. It must depend on nothing but the pod's spec and QoS class, the
            node, and its topology.
    """

    def __init__(self, topologies: Topologies, answer: Callable[[Pod, NodeInfo], int]) -> None:
        self._topologies = topologies
        self._answer = answer
        self._by_spec: OrderedDict[tuple[int, str], _Answers] = OrderedDict()

    def of(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Return the number for each row. Shape: one entry per row of `rows`."""
        if snapshot.is_fork:
            return np.array([self._answer(pod, snapshot.node(row)) for row in rows.tolist()], np.int64)
        answers = self._current(pod, snapshot)
        if not answers.is_complete:
            self._fill(answers, pod, snapshot, rows[~answers.is_known.take(rows)].tolist())
            answers.is_complete = bool(answers.is_known.take(snapshot.order).all())
        return answers.values.take(rows)

    def _fill(self, answers: _Answers, pod: Pod, snapshot: Snapshot, rows: Iterable[int]) -> None:
        for row in rows:
            answers.values[row] = self._answer(pod, snapshot.node(row))
            answers.is_known[row] = True

    def _current(self, pod: Pod, snapshot: Snapshot) -> _Answers:
        """Return the answers for the pod's spec, without those that have become outdated."""
        # The entry refers to the spec, so that its id belongs to no other.
        key, size = (id(pod.spec), pod.status.qos_class), len(snapshot.nodes)
        answers = self._by_spec.get(key)
        changed_rows = None if answers is None else snapshot.node_changes.since(answers.nodes_read)
        changed_names = None if answers is None else self._topologies.changes.since(answers.topologies_read)
        if answers is None or changed_rows is None or changed_names is None or len(answers.values) < size:
            answers = _Answers(pod.spec, np.zeros(size, np.int64), np.zeros(size, np.bool_), False, 0, 0)
            self._by_spec[key] = answers
            if len(self._by_spec) > _SPECS_KEPT:
                self._by_spec.popitem(last=False)
        else:
            self._by_spec.move_to_end(key)
            rows = {*changed_rows, *(row for name in changed_names if (row := snapshot.row_of.get(name)) is not None)}
            if len(rows) <= _CHANGES_AT_ONCE and all(snapshot.nodes[row] is not None for row in rows):
                self._fill(answers, pod, snapshot, rows)
            else:
                answers.is_known[list(rows)] = False
                answers.is_complete = False
        answers.nodes_read, answers.topologies_read = snapshot.node_changes.end, self._topologies.changes.end
        return answers
