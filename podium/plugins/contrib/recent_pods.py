"""Pods that were placed so recently that measured loads do not show them yet.

Owns when a pod was recent_pod, and the sums of such pods by node. Never knows what is summed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from podium.cluster import Snapshot
from podium.framework import contract as fwk
from podium.lib.change_log import ChangeLog
from podium.lib.clock import Clock
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.objects.times import time_or_none
from podium.plugins.contrib.load_columns import FloatArray
from podium.plugins.shared.followed import Followed

_NO_ROWS: Final[AbstractSet[int]] = frozenset()


class _RecentPod(NamedTuple):
    """A pod on a node, and the time at which it was placed there."""

    placed_s: float
    node_name: str
    amounts: Sequence[float]


class RecentPods:
    """The recently placed pods of all nodes.

    Args:
        count: how many amounts of each pod are summed up.
        amounts_of: the amounts of a pod. They must depend on its spec alone.

    Cost: one step for each pod that comes, goes, or is no longer recent.
    """

    def __init__(self, handle: fwk.Handle, count: int, amounts_of: Callable[[Pod], Sequence[float]]) -> None:
        self._clock = handle.clock
        self._amounts_of = amounts_of
        self._count = count
        self._placed: dict[str, _RecentPod] = {}
        self._by_time: list[tuple[float, str]] = []
        self._since_s = -math.inf
        self.changes: list[tuple[str, Sequence[float], int]] = []
        """Nodes, and what their sums are to be changed by at the next call; read-only for users."""
        self._sums: FloatArray = np.zeros((count, 0))
        self._sums_of_row: dict[int, list[float]] = {}
        """The columns of `_sums` that were ever changed: for one row, lists are ten times as fast as NumPy."""
        self._nodes: ChangeLog[int] | None = None
        self._nodes_end = -1
        self.changed_rows: AbstractSet[int] | None = None
        """The rows whose sums the last call has changed; None for all of them."""
        self._followed = Followed(handle.lister(PODS), self._on_pod_change)

    def sums(self, snapshot: Snapshot, since_s: float) -> FloatArray:
        """Return the sums over the pods that were placed after that time, in whole seconds.

        A time before that of an earlier call is taken for that one: older pods are forgotten.

        Shape: one row for each amount, one column for each row of the snapshot.
        """
        if not self._followed.is_read:
            self._followed.read()
        if since_s > self._since_s:
            self._since_s = since_s
        while self._by_time and self._by_time[0][0] <= self._since_s:
            placed_s, uid = heapq.heappop(self._by_time)
            recent_pod = self._placed.get(uid)
            if recent_pod is not None and recent_pod.placed_s == placed_s:
                self._forget(uid)
        nodes = snapshot.node_changes
        is_new = nodes is not self._nodes or nodes.end != self._nodes_end
        if not (is_new or self.changes):
            self.changed_rows = _NO_ROWS
            return self._sums
        if is_new:
            self._nodes, self._nodes_end = nodes, nodes.end
            self._sums = np.zeros((self._count, len(snapshot.nodes)))
            self._sums_of_row = {}
            self.changes = [(recent_pod.node_name, recent_pod.amounts, 1) for recent_pod in self._placed.values()]
        rows, sums, sums_of_row, row_of = set(), self._sums, self._sums_of_row, snapshot.row_of
        for node_name, amounts, sign in self.changes:
            row = row_of.get(node_name)
            if row is not None:
                if row not in sums_of_row:
                    sums_of_row[row] = [0.0] * self._count
                row_sums = sums_of_row[row]
                for at, amount in enumerate(amounts):
                    sums[at, row] = row_sums[at] = row_sums[at] + sign * amount
                rows.add(row)
        self.changes = []
        self.changed_rows = None if is_new else rows
        return sums

    def sums_of(self, row: int) -> Sequence[float]:
        """Return the sums of a row that the last call of `sums` has changed."""
        return self._sums_of_row[row]

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or old.node_name != new.node_name):
            self._forget(old.uid)
        if new is not None and new.node_name and (old is None or old.node_name != new.node_name):
            assumed_pod = self._placed.get(new.uid)
            if assumed_pod is None or assumed_pod.node_name != new.node_name:
                self._forget(new.uid)
                self._add(new, new.node_name, _placed_s(new, self._clock))

    def assume(self, pod: Pod, node_name: str) -> None:
        """Count the pod on the node from now on, before it is seen there."""
        if not self._followed.is_read:
            self._followed.read()
        self._add(pod, node_name, self._clock.now())

    def forget(self, pod: Pod) -> None:
        """Stop counting a pod that was assumed."""
        self._forget(pod.uid)

    def _add(self, pod: Pod, node_name: str, time_s: float) -> None:
        placed_s, uid = time_s // 1.0, pod.uid
        if placed_s > self._since_s:
            recent_pod = self._placed[uid] = _RecentPod(placed_s, node_name, self._amounts_of(pod))
            heapq.heappush(self._by_time, (placed_s, uid))
            self.changes.append((node_name, recent_pod.amounts, 1))

    def _forget(self, uid: str) -> None:
        recent_pod = self._placed.pop(uid, None)
        if recent_pod is not None:
            self.changes.append((recent_pod.node_name, recent_pod.amounts, -1))


def _placed_s(pod: Pod, clock: Clock) -> float:
    """Return when the pod was bound, as its status says, or else now: it has just been."""
    scheduled = pod.status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "True" and scheduled.last_transition_time:
        placed_s = _readable_s(scheduled.last_transition_time)
    else:
        placed_s = _readable_s(pod.status.start_time or "")
    return clock.now() if placed_s is None else placed_s


_readable_s = lru_cache(maxsize=1024)(time_or_none)
