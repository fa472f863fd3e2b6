"""The filters of one attempt over the nodes of one snapshot, with nominated pods.

Source: kubernetes v1.36.2, pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins,
RunFilterPluginsWithNominatedPods).
Differs: nodes are filtered many at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_usage import readable_pod_usage
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.pausing import FilterInterrupted
from podium.framework.contract.plugin import Scope
from podium.framework.contract.status import PluginError, ScheduleError, Status, failure_text
from podium.framework.cycle.closed_nodes import among_closed, closed_status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.nominated_pods import RowsOfNominations
from podium.framework.profile.cached_answers import CachedFilters
from podium.framework.profile.forms import Filter, active
from podium.framework.profile.rejection import FilterOutcome, Rejection, rejection_of, same_for_all
from podium.objects.core import Pod

P = ParamSpec("P")
OutcomeT = TypeVar("OutcomeT", bound=FilterOutcome)

# Making the positions anew for each chunk of nodes takes as long as ten slices of these.
_POSITIONS_KEPT: Final = 16_384
_POSITIONS: Final[Rows] = np.arange(_POSITIONS_KEPT)
_POSITIONS.setflags(write=False)


class FilterChain:
    """The filters that run in one attempt, with the state and the snapshot that they run on.

    These never change: a dry run has a chain of its own, on a clone of the state and a fork of the snapshot.
    """

    __slots__ = (
        "_active",
        "_counted",
        "_cycle",
        "_fork",
        "_framework",
        "_in_bulk",
        "_leading",
        "_nominated",
        "_pod",
        "_snapshot",
        "_state",
    )

    def __init__(
        self,
        cycle: Cycle,
        state: CycleState,
        snapshot: Snapshot,
        *,
        filters: Sequence[Filter] | None = None,
        bulk: Sequence[Filter | CachedFilters] | None = None,
        leading: Sequence[Filter] | None = None,
        counting_fork: Snapshot | None = None,
        fork: Snapshot | None = None,
    ) -> None:
        """Create a chain. What is left out is derived when first needed, but without `bulk` no answer is cached.

        Args:
            filters: without those whose PreFilter skipped them.
            bulk: the same, with cached answers in the place of neighbouring filters.
            leading: the leading filters that depend on a node's usage only, not on its single pods.
            counting_fork: a fork of the snapshot in which nominated pods count in their nodes' usage.
            fork: a fork of the snapshot that nominated pods may be added to.
        """
        self._cycle = cycle
        self._framework = cycle.framework
        self._pod = cycle.pod
        self._nominated = cycle.nominated_ahead
        self._state = state
        self._snapshot = snapshot
        self._active = filters
        self._in_bulk = self._filters if bulk is None else bulk
        self._leading = leading
        self._counted = counting_fork
        self._fork = fork

    @classmethod
    def of(cls, cycle: Cycle) -> FilterChain:
        """Return the filters of the attempt itself, with the answers that are cached for the pod's signature."""
        state, signature = cycle.state, cycle.signature
        bulk = None if signature is None else signature.active_filters(state.skipped_filters)
        return cls(cycle, state, cycle.snapshot, bulk=bulk)

    def elsewhere(self, state: CycleState, snapshot: Snapshot) -> FilterChain:
        """Return the same filters on a clone of the state and a fork of the snapshot."""
        return FilterChain(self._cycle, state, snapshot, filters=self._filters, leading=self._leading, fork=snapshot)

    def where_usage_changes(self, rows: Rows) -> FilterChain:
        """Return the same filters on a fork where `add_usage` works, for these rows. All must depend on usage only."""
        assert self.depends_on_usage_only
        # Nominated pods count in a fork of their own, to which the same usage is added.
        counting_fork = self._nominated.counting_fork_of(rows, self._snapshot) if self._nominated else None
        return self._variant(self._snapshot.fork_usage(rows), self._filters, counting_fork)

    def of_usage(self) -> FilterChain:
        """Return only the filters whose verdicts depend on usage, on the same snapshot."""
        filters = [plugin_filter for plugin_filter in self._filters if self._scope(plugin_filter) is Scope.USAGE]
        return self._variant(self._snapshot, filters, self._counted)

    def _variant(self, snapshot: Snapshot, filters: Sequence[Filter], counting_fork: Snapshot | None) -> FilterChain:
        return FilterChain(
            self._cycle, self._state, snapshot, filters=filters, leading=filters, counting_fork=counting_fork
        )

    def add_usage(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to the rows; negative amounts remove it."""
        self._snapshot.add_usage(rows, usage)
        if self._counted is not None:
            self._counted.add_usage(rows, usage)

    @property
    def passes_all(self) -> bool:
        """No filter is active and no node is closed, so every node passes."""
        return not self._in_bulk and not self._snapshot.closed

    @property
    def depends_on_usage_only(self) -> bool:
        """Every filter depends only on a node's total usage, not on its individual pods."""
        return len(self._usage_filters) == len(self._filters)

    @property
    def nominations(self) -> RowsOfNominations:
        """The nominations that count for this pod."""
        return self._nominated.rows

    @property
    def _filters(self) -> Sequence[Filter]:
        if self._active is None:
            self._active = active(self._framework.filters, self._state)
        return self._active

    @property
    def _usage_filters(self) -> Sequence[Filter]:
        if self._leading is None:
            self._leading = list(
                # Only leading ones: a filter after one that reads pods must not run before it.
                itertools.takewhile(lambda plugin_filter: self._scope(plugin_filter) <= Scope.USAGE, self._filters)
            )
        return self._leading

    def _scope(self, plugin_filter: Filter) -> Scope:
        return self._framework.scope_of(plugin_filter.plugin.filter_scope, plugin_filter.name, self._pod)

    def rejection_of_all(self, rows: Rows) -> Rejection | None:
        """Return the rejection of all these rows by cached filters, if these come first and nothing else counts."""
        # Anything that may add another reason makes the cached answer incomplete.
        if self._snapshot.closed or self._nominated or not isinstance(first := self._in_bulk[0], CachedFilters):
            return None
        return first.rejection_of_all(rows)

    def alone(self, row: int) -> Status | None:
        """Return the status of one node, filtered first with its nominated pods added, then without them."""
        if (status_of_closed := closed_status(self._snapshot, row)) is not None:
            return status_of_closed
        nominated_pods = self._nominated.on(row)
        if nominated_pods:
            status = self._beside(row, nominated_pods)
            if status is not None:
                return status
        # Again without them: they may never arrive, so the pod must not depend on them.
        return self._first_rejection(row, self._state, self._snapshot)

    def filter(self, rows: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Return the positions that pass, and those that each filter rejected. Shape: positions in `rows`."""
        if self._snapshot.closed and (closed_answer := among_closed(self._snapshot, rows)) is not None:
            return self._filter_open(rows, *closed_answer)
        count = len(rows)
        positions: Rows = _POSITIONS[:count] if count <= _POSITIONS_KEPT else np.arange(count)
        if not self._nominated:
            return self._filter(self._in_bulk, rows, positions, self._state, self._snapshot)
        is_nominated = self._nominated.column.take(rows)
        # Usually one node in thousands has a nominated pod, and often not among these.
        if not np.count_nonzero(is_nominated):
            return self._filter(self._in_bulk, rows, positions, self._state, self._snapshot)
        # First what may be interrupted, and is run again then.
        feasible, rejections_of_others = self._filter(
            self._in_bulk, rows, positions[~is_nominated], self._state, self._snapshot
        )
        nominated_positions, rejections = self._filter_nominated(rows, positions[is_nominated])
        return np.sort(np.concatenate((feasible, nominated_positions))) if len(
            nominated_positions
        ) else feasible, rejections + rejections_of_others

    def _filter_open(
        self, rows: Rows, is_closed: NDArray[np.bool_], rejection: Rejection
    ) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Filter rows of which some have closed nodes; otherwise like `filter`."""
        positions = np.flatnonzero(~is_closed)
        feasible, rejections = self.filter(rows[positions])
        open_rejections = [(positions[row_positions], open_rejection) for row_positions, open_rejection in rejections]
        return positions[feasible], [(np.flatnonzero(is_closed), rejection), *open_rejections]

    def _filter_nominated(self, rows: Rows, positions: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Filter nodes with nominated pods: with these pods added, then without; otherwise like `filter`.

        Up to the first filter that depends on the pods themselves, adding their usage is enough.
        """
        if (filters := self._cached_beside_nominated()) is not None:
            positions, rejections = self._filter(filters, rows, positions, self._state, self._snapshot)
            positions, further_rejections = self._filter(self._in_bulk, rows, positions, self._state, self._snapshot)
            return positions, rejections + further_rejections
        if self._counted is None:
            self._counted = self._nominated.counting_fork(self._snapshot)
        counting = self._usage_filters
        positions, rejections = self._filter(counting, rows, positions, self._state, self._counted)
        # Filters of usage see nominated pods as added amounts, so one pass over the columns does for all nodes.
        if self.depends_on_usage_only:
            positions, further_rejections = self._filter(counting, rows, positions, self._state, self._snapshot)
        else:
            positions, further_rejections = self._one_by_one(rows, positions)
        return positions, rejections + further_rejections

    def _cached_beside_nominated(self) -> Sequence[CachedFilters] | None:
        """Return the cached verdicts on nodes with their nominated pods added, if those of all filters are cached."""
        signature = self._cycle.signature
        # The filters of a dry run have no cached verdicts.
        if signature is None or not self.depends_on_usage_only:
            return None
        if not all(isinstance(plugin_filter, CachedFilters) for plugin_filter in self._in_bulk):
            return None
        return signature.beside_nominated(self._pod, self._nominated.rows, self._count_nominated)

    def _count_nominated(self, rows: Rows) -> Snapshot:
        """Return a fork where nominated pods count on these rows, which all have some."""
        return self._snapshot.fork_usage(*self._nominated.rows.usage_on(rows, self._snapshot))

    def _one_by_one(self, rows: Rows, positions: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        rejections: list[tuple[Rows, Rejection]] = []
        feasible: list[int] = []
        for position in positions.tolist():
            status = self.alone(int(rows[position]))
            if status is None:
                feasible.append(position)
            else:
                index = np.array([position])
                rejections.append((index, same_for_all(rows[index], status)))
        return np.array(feasible, np.intp), rejections

    def _filter(
        self,
        filters: Sequence[Filter | CachedFilters],
        rows: Rows,
        positions: Rows,
        state: CycleState,
        snapshot: Snapshot,
    ) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Run the filters in order. Each filter sees only the rows that passed the ones before it."""
        rejections: list[tuple[Rows, Rejection]] = []
        # Indexing copies the array, which is not needed as long as all rows remain.
        remaining_rows = rows if len(positions) == len(rows) else rows[positions]
        for plugin_filter in filters:
            if not len(remaining_rows):
                break
            if isinstance(plugin_filter, CachedFilters):
                outcome = plugin_filter.outcome(remaining_rows)
            else:
                outcome = self._ask(plugin_filter, state, snapshot, remaining_rows)
            if outcome is None:
                continue
            fails, rejection = outcome
            rejections.append((positions[fails.nonzero()[0]], rejection))
            passes = (~fails).nonzero()[0]
            positions, remaining_rows = positions[passes], remaining_rows[passes]
        return positions, rejections

    def _ask(
        self, plugin_filter: Filter, state: CycleState, snapshot: Snapshot, rows: Rows
    ) -> tuple[NDArray[np.bool_], Rejection] | None:
        # A plugin that wrote to its rows would change what later plugins see.
        rows.setflags(write=False)
        return self._observe(plugin_filter, len(rows), _rejection, plugin_filter, state, self._pod, snapshot, rows)

    def _first_rejection(self, row: int, state: CycleState, snapshot: Snapshot) -> Status | None:
        node = snapshot.node(row)
        for plugin_filter in self._filters:
            status = self._observe(plugin_filter, 1, _status, plugin_filter, state, self._pod, node)
            if status is not None:
                return status
        return None

    def _observe(
        self, plugin_filter: Filter, nodes: int, ask: Callable[P, OutcomeT], *args: P.args, **kwargs: P.kwargs
    ) -> OutcomeT:
        """Count and time the call of a filter for this many nodes, and turn its exception into a ScheduleError."""
        framework = self._framework
        framework.observer.count_evaluations(plugin_filter.name, "Filter", framework.name, nodes)
        started_s = framework.clock.monotonic()
        try:
            outcome = ask(*args, **kwargs)
        except FilterInterrupted:
            # It has no answer yet, and is called again.
            raise
        except BaseException as error:
            action = f'running "{plugin_filter.name}" filter plugin'
            raise framework.plugin_failure(plugin_filter.name, "Filter", self._pod, action, error, started_s) from error
        framework.observe_filter(plugin_filter.name, self._pod, started_s, outcome, nodes)
        return outcome

    def _beside(self, row: int, nominated_pods: Sequence[Pod]) -> Status | None:
        """Return the status of one node with its nominated pods added; they are removed again afterwards."""
        # Made once and kept, since pods are taken off again; a fork for each node would cost far more.
        if self._fork is None:
            self._fork = self._snapshot.fork()
        snapshot = self._fork
        uids: list[str] = []
        try:
            state = self._state.clone()
            for nominated_pod in nominated_pods:
                assigned = nominated_pod.on_node(snapshot.name(row))
                snapshot.add_pod(row, assigned, readable_pod_usage(nominated_pod))
                uids.append(assigned.uid)
                self._framework.run_add_pod(state, self._pod, nominated_pod, snapshot.node(row))
            return self._first_rejection(row, state, snapshot)
        except PluginError as error:
            raise ScheduleError(str(error)) from error
        finally:
            for uid in reversed(uids):
                snapshot.remove_pod(row, uid)


def _rejection(
    plugin_filter: Filter, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
) -> tuple[NDArray[np.bool_], Rejection] | None:
    return rejection_of(rows, plugin_filter.filter(state, pod, snapshot, rows))


def _status(plugin_filter: Filter, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
    status = plugin_filter.filter_one(state, pod, node)
    if status is None or status.is_rejected:
        return status
    raise PluginError(failure_text(status))
