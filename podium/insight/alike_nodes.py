"""Nodes that are alike for a pod: the same is in its way on each of them, and the same edits of the node would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.insight.blockers import Blockers
from podium.insight.node_edits import HOSTNAME, label_keys
from podium.objects.core import NodeSelector, Pod

TAINTS: Final = frozenset({"TaintToleration", "NodeUnschedulable"})
LABELS: Final = frozenset({"NodeAffinity", "VolumeBinding", "VolumeZone"})


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes that are alike.

    Attributes:
        at: their places in node order, ascending.
        plugins: the filters that reject the pod there.
    """

    at: Rows
    plugins: frozenset[str]

    @property
    def others(self) -> frozenset[str]:
        """The filters that no edit of the node helps against."""
        return self.plugins - TAINTS - LABELS


class AlikeNodes:
    """The nodes of a snapshot by their taints, and by the labels that the pod asks for.

    Args:
        demands: what the node has to match beside.

    Attributes:
        tells_apart: whether the pod or the demands ask for names, so that a new node may do where one like it does not.

    Cost: a few array operations for each question, whatever the number of nodes; a loop over all nodes for each label
    that was never asked for before.
    """

    def __init__(self, snapshot: Snapshot, pod: Pod, demands: Sequence[NodeSelector]) -> None:
        keys, by_name = label_keys(pod, demands)
        self.tells_apart = by_name or HOSTNAME in keys
        self._order = snapshot.order
        columns = [snapshot.taint_set, snapshot.unschedulable, *(snapshot.label_column(key).ids for key in keys)]
        codes = np.zeros(len(snapshot.order), np.int64)
        for column in columns:
            _, ids = np.unique(column.take(snapshot.order), return_inverse=True)
            _, codes = np.unique(codes * (len(codes) + 1) + ids, return_inverse=True)
        self._codes: IntArray = np.arange(len(codes)) if by_name else codes

    def rejected(self, blockers: Blockers, edits_max: int) -> Iterator[Alike]:
        """The nodes on which something is in the way for which so many edits of nodes and evictions may be enough."""
        rejected = {plugin: blockers.rejected_by(plugin).take(self._order) for plugin in blockers.plugins}
        groups = np.zeros((3, len(self._order)), np.bool_)
        is_hopeless = np.zeros(len(self._order), np.bool_)
        codes = self._codes
        for plugin, found in rejected.items():
            is_other = plugin not in TAINTS and plugin not in LABELS
            groups[2 if is_other else int(plugin in LABELS)] |= found
            codes = codes * 2 + found
            if is_other:
                is_hopeless |= found & blockers.unresolvable_by(plugin).take(self._order)
        count = groups.sum(axis=0)
        at = np.flatnonzero((count > 0) & (count <= edits_max) & ~is_hopeless)
        if not len(at):
            return
        _, sizes = np.unique(codes[at], return_counts=True)
        for part in np.split(at[np.argsort(codes[at], kind="stable")], np.cumsum(sizes)[:-1]):
            yield Alike(part, frozenset(plugin for plugin, found in rejected.items() if found[part[0]]))
