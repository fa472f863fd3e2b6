"""Verdicts on nodes with nominated pods, as if these were there already, cached for one pod signature.

Owns which of these verdicts still hold. Never adds a nominated pod to a node: the asker lends a fork where it counts.

Cost: as `cached_answers`, for each row whose node, usage or nominations have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Rows, Snapshot
from podium.framework.contract.plugin import Scope
from podium.framework.profile.cached_answers import Asking, CachedFilters


class Nominations(Protocol):
    """The nominations that count for a pod, by row."""

    def column(self, size: int) -> NDArray[np.bool_]:
        """Return by row, whether any pod is nominated to the node. Shape: `size` entries, one per row."""

    def rows_changed_since(self, former: object) -> Collection[int]:
        """Return the rows whose nominations may differ from the former value."""


class NominatedVerdicts:
    """The verdicts of runs of cached filters on rows with nominated pods, whose usage counts there.

    Args:
        runs: the same runs without nominated pods. All their filters depend on a node and its usage only.
    """

    def __init__(self, runs: Iterable[CachedFilters]) -> None:
        self._runs = [run.without_answers() for run in runs]
        self._nominations: Nominations | None = None
        self._seen = 0, 0
        # Whether the verdicts on a row hold, and whether those of filters that see no usage do.
        self._is_valid = self._is_node_valid = np.zeros(0, np.bool_)

    def of(
        self,
        nominations: Nominations,
        snapshot: Snapshot,
        count_on: Callable[[Rows], Snapshot],
        ask_about: Callable[[Snapshot], Asking],
    ) -> Sequence[CachedFilters]:
        """Return the runs with current verdicts for all rows that have nominations, and for no others.

        Args:
            snapshot: always the same one.
            count_on: returns a fork where nominated pods count in the usage of these rows.

        Raises:
            Exception: whatever a plugin raises.
        """
        self._follow(nominations, snapshot)
        rows = (nominations.column(len(snapshot.nodes)) & ~self._is_valid).nonzero()[0]
        if len(rows):
            asking = ask_about(count_on(rows))
            is_node_valid = self._is_node_valid.take(rows)
            for scope, changed_rows in ((Scope.NODE, rows[~is_node_valid]), (Scope.USAGE, rows[is_node_valid])):
                # In table form: in node form a plugin may count the pods themselves, which are not there.
                for run in self._runs if len(changed_rows) else ():
                    run.update(asking, changed_rows, scope)
            self._is_valid[rows] = self._is_node_valid[rows] = True
        return self._runs

    def _follow(self, nominations: Nominations, snapshot: Snapshot) -> None:
        """Drop the verdicts on rows that have changed."""
        nodes_seen, usage_seen = self._seen
        nodes, usage = snapshot.node_changes.since(nodes_seen), snapshot.usage_changes.since(usage_seen)
        size = len(snapshot.nodes)
        if nodes is None or usage is None or size != len(self._is_valid):
            self._is_valid, self._is_node_valid = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
            for run in self._runs:
                run.resize(size)
        else:
            self._is_valid[[*nodes, *usage, *nominations.rows_changed_since(self._nominations)]] = False
            if nodes:
                self._is_node_valid[[*nodes]] = False
        self._nominations = nominations
        self._seen = snapshot.node_changes.end, snapshot.usage_changes.end
