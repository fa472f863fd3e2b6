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
from podium.objects.requests import Requests, filter_requests


@dataclass(frozen=True, slots=True)
class Level:
    """The domains of one label, as the nodes in `snapshot.order` see theirs.

    Attributes:
        members: how many pods of the group are in the domain.
        room: how many of the group's other pods fit into it.
        takes_all: whether all of them do.
        spare: how many pods like the next one fit besides.

    Shape: one entry for each node in that order; 0 and False without the label.
    """

    has_domain: BoolArray
    members: IntArray
    room: IntArray
    takes_all: BoolArray
    spare: IntArray


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
        have most of its pods, then those that can take the rest, and then those with most room, so that it uses few.

        Shape: one entry for each node in that order.
        """
        _, first = np.unique(self.paths, return_index=True)
        tier, spare = np.zeros((2, len(first)), np.int64)
        columns: list[IntArray] = []
        for index in reversed(range(len(self.levels))):
            level = self.levels[index]
            members, takes_all = level.members[first], level.takes_all[first]
            is_enough = takes_all & (members == self.member_count)
            tier = np.where(is_enough, len(self.levels) - index, tier)
            spare = np.where(is_enough, level.spare[first], spare)
            columns += [
                members,
                takes_all.astype(np.int64),
                np.where(takes_all, -level.spare[first], level.room[first]),
            ]
        keys = np.stack([tier, -spare, *columns], axis=1)
        _, ranks = np.unique(keys, axis=0, return_inverse=True)
        return ranks.reshape(-1).astype(np.int64)[self.paths]


def domains_of(
    snapshot: Snapshot, labels: Sequence[str], missing_pods: Sequence[Pod], members_by_row: Mapping[int, int]
) -> Domains:
    """Return the domains by these labels, the narrowest first.

    Args:
        missing_pods: the pods of the group without a node; the first of them is the next pod.
        members_by_row: how many pods of the group are on each row.

    Raises:
        FieldError: a request cannot be parsed.
    """
    rows = snapshot.order
    members_on_rows = np.zeros(len(snapshot.nodes), np.int64)
    for row, count in members_by_row.items():
        members_on_rows[row] = count
    members = members_on_rows[rows]
    demands = _demands(snapshot, missing_pods)
    levels: list[Level] = []
    paths = np.zeros(len(rows), np.int64)
    for label in reversed(labels):
        column = snapshot.label_column(label)
        value_ids = column.ids[rows].astype(np.int64)
        # Within the wider domain, since racks of two blocks may have one name.
        _, paths = np.unique(paths * len(column.values) + value_ids, return_inverse=True)
        has_domain = value_ids != ABSENT
        member_sums = np.bincount(paths, weights=members)[paths].astype(np.int64)
        room, takes_all, spare = (numbers[paths] for numbers in _fill(snapshot, paths, demands))
        levels.insert(
            0,
            Level(
                has_domain,
                np.where(has_domain, member_sums, 0),
                np.where(has_domain, room, 0),
                has_domain & takes_all,
                np.where(has_domain, spare, 0),
            ),
        )
    return Domains(levels, paths.astype(np.int64), len(missing_pods), sum(members_by_row.values()))


@dataclass(frozen=True, slots=True)
class _Demand:
    """So many pods with equal specs, and which nodes in `snapshot.order` they may be on."""

    requests: Requests
    count: int
    is_open: BoolArray
    is_next: bool


def _demands(snapshot: Snapshot, pods: Sequence[Pod]) -> list[_Demand]:
    """Return the demands of the pods, the largest first, since small pods fit into what large ones leave."""
    by_spec: dict[int, list[Pod]] = {}
    for pod in pods:
        by_spec.setdefault(id(pod.spec), []).append(pod)
    demands = [
        _Demand(filter_requests(alike[0].spec), len(alike), _is_open(snapshot, alike[0]), alike[0].spec is pods[0].spec)
        for alike in by_spec.values()
    ]
    largest = {
        name: max(1, int(snapshot.allocatable(name).max(initial=0))) for item in demands for name in item.requests
    }

    def share(demand: _Demand) -> float:
        return max((amount / largest[name] for name, amount in demand.requests.items()), default=0.0)

    return sorted(demands, key=share, reverse=True)


def _fill(snapshot: Snapshot, paths: IntArray, demands: Sequence[_Demand]) -> tuple[IntArray, BoolArray, IntArray]:
    """Fill each domain with the pods, node by node; return how many fit, whether all do, and what is to spare.

    Shape: one entry for each domain.
    """
    by_domain = np.argsort(paths, kind="stable")
    domain_ids = paths[by_domain]
    starts = np.flatnonzero(np.diff(domain_ids, prepend=-1))
    rows = snapshot.order[by_domain]
    free = {
        name: snapshot.allocatable(name)[rows] - snapshot.requested(name)[rows]
        for item in demands
        for name in item.requests
    }
    places = (snapshot.allowed_pods[rows] - snapshot.pod_count[rows]).clip(0)

    def fitting(demand: _Demand) -> IntArray:
        counts = places
        for name, amount in demand.requests.items():
            if amount:
                counts = np.minimum(counts, free[name].clip(0) // amount)
        return np.where(demand.is_open[by_domain], counts, 0)

    room = np.zeros(len(starts), np.int64)
    takes_all = np.ones(len(starts), np.bool_)
    for demand in demands:
        counts = fitting(demand)
        counts_before = np.cumsum(counts) - counts
        allotted_counts = (demand.count - (counts_before - counts_before[starts][domain_ids])).clip(0, counts)
        sums = np.add.reduceat(counts, starts)
        room += np.minimum(sums, demand.count)
        takes_all &= sums >= demand.count
        places = places - allotted_counts
        for name, amount in demand.requests.items():
            free[name] = free[name] - allotted_counts * amount
    (next_demand,) = (demand for demand in demands if demand.is_next)
    return room, takes_all, np.add.reduceat(fitting(next_demand), starts)


def _is_open(snapshot: Snapshot, pod: Pod) -> BoolArray:
    """Return on which of the nodes in `snapshot.order` the pod may be, by selectors and taints."""
    rows = snapshot.order
    is_repelling = np.array([is_repelled(pod.spec.tolerations, taints) for taints in snapshot.taint_sets], np.bool_)
    is_open: BoolArray = ~snapshot.unschedulable[rows] & ~is_repelling[snapshot.taint_set[rows]]
    selector = row_selector(pod.spec)
    if not selector.everything:
        is_open &= selector.matching(snapshot, rows)
    return is_open
