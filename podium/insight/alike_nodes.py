"""Groups of nodes that are alike for a pod: the same filters reject it, and the same edits of the node would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.insight.blockers import Blockers
from podium.insight.node_edits import HOSTNAME, node_requirements, value_meets
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement
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
    """The nodes of a snapshot, grouped by their taints and by what of the pod's demands their labels and names meet.

    Args:
        demands: node selectors that the node has to match as well.

    Attributes:
        tells_apart: whether the pod or the demands select by name, so that a new node may fit where one like it does
            not.

    Cost: a few array operations for each question, whatever the number of nodes; a loop over all nodes for each label
    that was never asked for before.
    """

    def __init__(self, snapshot: Snapshot, pod: Pod, demands: Sequence[NodeSelector]) -> None:
        label_requirements, name_requirements = node_requirements(pod, demands)
        self.tells_apart = bool(name_requirements) or any(item.key == HOSTNAME for item in label_requirements)
        self._order = snapshot.order
        columns = [
            snapshot.taint_set,
            snapshot.unschedulable,
            # Which changes of labels a node needs depends on which requirements its labels meet.
            *(_is_met(requirement, snapshot) for requirement in label_requirements),
            *(_is_named(requirement, snapshot) for requirement in name_requirements),
        ]
        codes = np.zeros(len(snapshot.order), np.int64)
        for column in columns:
            _, ids = np.unique(column.take(snapshot.order), return_inverse=True)
            # Renumbered after each column, so that the product of the next one stays far below int64.
            _, codes = np.unique(codes * (len(codes) + 1) + ids, return_inverse=True)
        self._codes: IntArray = codes

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


def _is_met(requirement: NodeSelectorRequirement, snapshot: Snapshot) -> BoolArray:
    """Return which nodes have a label that meets the requirement. Shape: one entry per row of the snapshot."""
    column = snapshot.label_column(requirement.key)
    if requirement.operator in ("In", "NotIn"):
        ids = [value_id for value in requirement.values if (value_id := column.id_of(value)) is not None]
        has_value: BoolArray = np.isin(column.ids, ids)
        return has_value if requirement.operator == "In" else ~has_value
    answers = np.array([value_meets(requirement, value) for value in column.values], np.bool_)
    return answers.take(column.ids)


def _is_named(requirement: NodeSelectorRequirement, snapshot: Snapshot) -> BoolArray:
    """Return which nodes the requirement names. Shape: one entry per row of the snapshot."""
    is_named = np.zeros(len(snapshot.nodes), np.bool_)
    is_named[[row for name in requirement.values if (row := snapshot.row_of.get(name)) is not None]] = True
    return is_named
