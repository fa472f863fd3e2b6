"""Groups of nodes that are alike for a pod: the same filters reject it, and the same edits of the node would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.insight.blockers import Blockers
from podium.insight.node_edits import HOSTNAME, label_keys
from podium.objects.affinity import NodeSelector
from podium.objects.core import Pod

TAINTS: Final = frozenset({"TaintToleration", "NodeUnschedulable"})
LABELS: Final = frozenset({"NodeAffinity", "VolumeBinding", "VolumeZone"})


@dataclass(frozen=True, slots=True)
class AlikeGroup:
    """A group of nodes that are alike.

    Attributes:
        positions: their places in node order, ascending.
        plugins: the filters that reject the pod there.
    """

    positions: Rows
    plugins: frozenset[str]

    @property
    def others(self) -> frozenset[str]:
        """The filters that still reject the pod after any edit of the node."""
        return self.plugins - TAINTS - LABELS


class AlikeNodes:
    """The nodes of a snapshot, grouped by their taints and by the labels that the pod selects by.

    Args:
        demands: node selectors that the node has to match as well.

    Attributes:
        tells_apart: whether the pod or the demands select by name, so that a new node may fit where one like it does
            not.

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
            # Renumbered after each column, so that the product of the next one stays far below int64.
            _, codes = np.unique(codes * (len(codes) + 1) + ids, return_inverse=True)
        # A pod that selects nodes by name sees each of them as different.
        self._codes: IntArray = np.arange(len(codes)) if by_name else codes

    def rejected_groups(self, blockers: Blockers, edits_max: int) -> Iterator[AlikeGroup]:
        """Yield the groups of nodes that up to `edits_max` edits of the node and evictions may make feasible."""
        rejections = {plugin: blockers.rejected_by(plugin).take(self._order) for plugin in blockers.plugins}
        groups = np.zeros((3, len(self._order)), np.bool_)
        is_hopeless = np.zeros(len(self._order), np.bool_)
        codes = self._codes
        for plugin, mask in rejections.items():
            is_other = plugin not in TAINTS and plugin not in LABELS
            groups[2 if is_other else int(plugin in LABELS)] |= mask
            codes = codes * 2 + mask
            if is_other:
                # No eviction changes such a verdict, and an edit of the node covers only taints and labels.
                is_hopeless |= mask & blockers.unresolvable_by(plugin).take(self._order)
        count = groups.sum(axis=0)
        positions = np.flatnonzero((count > 0) & (count <= edits_max) & ~is_hopeless)
        if not len(positions):
            return
        _, sizes = np.unique(codes[positions], return_counts=True)
        for part in np.split(positions[np.argsort(codes[positions], kind="stable")], np.cumsum(sizes)[:-1]):
            yield AlikeGroup(part, frozenset(plugin for plugin, mask in rejections.items() if mask[part[0]]))
