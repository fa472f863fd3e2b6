"""The domains of one group's next pod: how many of its pods each domain has, and how many more it can take.

Owns the order of nodes for that pod. Pure functions of a snapshot; never decides which pods are a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import IntArray, Snapshot
from podium.cluster.labels import ABSENT
from podium.cluster.matching.node_selectors import row_selector
from podium.cluster.matching.taints import is_repelled
from podium.cluster.snapshot import BoolArray
from podium.objects.core import Pod
from podium.objects.requests import filter_requests


@dataclass(frozen=True, slots=True)
class Level:
    """The domains of one label, as the nodes in `snapshot.order` see theirs.

    Shape: one entry for each node in that order; 0 and False without the label.
    """

    has_domain: BoolArray
    members: IntArray
    room: IntArray


@dataclass(frozen=True, slots=True)
class Domains:
    """The levels of a snapshot for one pod, the narrowest first.

    Attributes:
        paths: for each node the number of its path through all levels: nodes of one path are alike.
        missing_count: how many pods of the group have no node yet, the pod itself included.
        member_count: how many have one.
    """

    levels: Sequence[Level]
    paths: IntArray
    missing_count: int
    member_count: int

    def order(self) -> IntArray:
        """Return a number for each node in `snapshot.order`, higher is better and equal ones are alike.

        The group goes into the narrowest domain that has all its placed pods and room for the rest; of several such
        domains into the one with least room to spare. Where no domain of a level is enough, it fills those first that
        have most of its pods, and then those with most room, so that it uses few.

        Shape: one entry for each node in that order.
        """
        _, first = np.unique(self.paths, return_index=True)
        tier, spare = np.zeros((2, len(first)), np.int64)
        columns: list[IntArray] = []
        for index in reversed(range(len(self.levels))):
            level = self.levels[index]
            members, room = level.members[first], level.room[first]
            takes_all = level.has_domain[first] & (members == self.member_count) & (room >= self.missing_count)
            tier = np.where(takes_all, len(self.levels) - index, tier)
            spare = np.where(takes_all, room - self.missing_count, spare)
            columns += [members, np.where(room >= self.missing_count, -room, room)]
        keys = np.stack([tier, -spare, *columns], axis=1)
        _, ranks = np.unique(keys, axis=0, return_inverse=True)
        return ranks.reshape(-1).astype(np.int64)[self.paths]


def domains_of(
    snapshot: Snapshot, labels: Sequence[str], pod: Pod, members_by_row: Mapping[int, int], missing_count: int
) -> Domains:
    """Return the domains by these labels, the narrowest first.

    Args:
        members_by_row: how many pods of the group are on each row.
    """
    rows = snapshot.order
    members_on_rows = np.zeros(len(snapshot.nodes), np.int64)
    for row, count in members_by_row.items():
        members_on_rows[row] = count
    members, room = members_on_rows[rows], _room(snapshot, pod)
    levels: list[Level] = []
    paths = np.zeros(len(rows), np.int64)
    for label in reversed(labels):
        column = snapshot.label_column(label)
        value_ids = column.ids[rows].astype(np.int64)
        # Within the wider domain, since racks of two blocks may have one name.
        _, paths = np.unique(paths * len(column.values) + value_ids, return_inverse=True)
        has_domain = value_ids != ABSENT
        member_sums, room_sums = (
            np.where(has_domain, np.bincount(paths, weights=numbers)[paths].astype(np.int64), 0)
            for numbers in (members, room)
        )
        levels.insert(0, Level(has_domain, member_sums, room_sums))
    return Domains(levels, paths.astype(np.int64), missing_count, sum(members_by_row.values()))


def _room(snapshot: Snapshot, pod: Pod) -> IntArray:
    """Return how many pods like this one fit on each node in `snapshot.order`, by requests, selectors and taints."""
    rows = snapshot.order
    room = (snapshot.allowed_pods[rows] - snapshot.pod_count[rows]).clip(0)
    for name, amount in filter_requests(pod.spec).items():
        if amount:
            free = (snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows]).clip(0)
            room = np.minimum(room, free // amount)
    is_repelling = np.array([is_repelled(pod.spec.tolerations, taints) for taints in snapshot.taint_sets], np.bool_)
    is_open = ~snapshot.unschedulable[rows] & ~is_repelling[snapshot.taint_set[rows]]
    selector = row_selector(pod.spec)
    if not selector.everything:
        is_open &= selector.matching(snapshot, rows)
    return np.where(is_open, room, 0)
