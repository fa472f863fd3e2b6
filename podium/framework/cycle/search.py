"""Finding feasible nodes: the rotating search, and filtering with nominated pods.

Source: kubernetes pkg/scheduler/schedule_one.go (findNodesThatFitPod, findNodesThatPassFilters) and
framework/runtime/framework.go (RunFilterPluginsWithNominatedPods), v1.36.2.
Differs: nodes are filtered many at a time, in the order in which upstream examines them with `parallelism: 1`; nodes
beyond the last one that upstream would have examined are left out of the diagnosis.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.pod_usage import readable_pod_usage
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.interface import Scope
from podium.framework.contract.pausing import FilterInterrupted, Turn
from podium.framework.contract.status import FAILED, Code, PluginError, ScheduleError, Status, failure_text
from podium.framework.cycle.cached_answers import CachedFilters
from podium.framework.cycle.closed_nodes import among_closed, closed_status
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.diagnosis import Diagnosis, FilterOutcome, Rejection, rejection_of
from podium.framework.cycle.pre_filter import run_pre_filter
from podium.framework.cycle.steps import PAUSE, Pause, Steps, run_unasked
from podium.framework.profile.forms import Filter, active
from podium.objects.core import Pod

P = ParamSpec("P")
OutcomeT = TypeVar("OutcomeT", bound=FilterOutcome)

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE_OF_NODES = 5
_CHUNK_ROWS_MIN = 128


@dataclass(slots=True)
class Rotation:
    """Where the next search starts, so that all nodes are examined in turn. All profiles share one."""

    next_start: int = 0


class Feasible(msgspec.Struct, frozen=True):
    """The feasible nodes in the order in which they were examined. `examined` also counts rejected nodes."""

    rows: Rows
    examined: int


NONE_FEASIBLE: Final = Feasible(np.empty(0, np.intp), 0)


def count_to_find(node_count: int, percentage: int) -> int:
    """How many feasible nodes a search looks for before it stops.

    Args: `percentage` is percentageOfNodesToScore; 0 means adaptive.
    """
    if node_count < MIN_FEASIBLE_NODES:
        return node_count
    if percentage == 0:
        percentage = max(50 - node_count // 125, MIN_PERCENTAGE_OF_NODES)
    return max(node_count * percentage // 100, MIN_FEASIBLE_NODES)


class Sampling(NamedTuple):
    """Which nodes a search examines: from where on, and until how many of them are feasible.

    Attributes:
        percentage: percentageOfNodesToScore; 0 means adaptive.
        is_one_enough: nothing scores the nodes, so that the first feasible one is chosen.
    """

    rotation: Rotation
    percentage: int
    is_one_enough: bool = False

    def wanted(self, node_count: int) -> int:
        """How many feasible nodes a search looks for among so many nodes."""
        return 1 if self.is_one_enough else count_to_find(node_count, self.percentage)


def find_feasible(cycle: Cycle, sampling: Sampling) -> Steps[Feasible]:
    """The feasible nodes; the rejections of the others go into the diagnosis. Pauses if a filter takes long.

    Raises:
        ScheduleError: a plugin failed.
    """
    names = run_pre_filter(cycle)
    if isinstance(names, Status):
        return NONE_FEASIBLE
    filters = FilterRun(cycle)
    return on_nominated_node(cycle, filters) or (yield from search_around(cycle, filters, names, sampling))


def on_nominated_node(cycle: Cycle, filters: FilterRun) -> Feasible | None:
    """The node that the pod is nominated to, if it fits there: then no other node is examined."""
    row = cycle.snapshot.row_of.get(cycle.pod.status.nominated_node_name)
    if row is None or row not in cycle.snapshot.order:
        return None
    try:
        status = filters.alone(row)
    except ScheduleError:
        return None
    if status is None:
        return Feasible(np.array([row], np.intp), 1)
    cycle.diagnosis.reject_one(row, status)
    return None


def search_around(
    cycle: Cycle, filters: FilterRun, names: frozenset[str] | None, sampling: Sampling
) -> Steps[Feasible]:
    """Examine nodes in turn until enough are feasible, and begin the next search behind the last one examined.

    Pauses if a filter takes long.

    Args: `names` are the only nodes to examine, None for all.

    Raises:
        ScheduleError: a plugin failed.
    """
    framework, rotation = cycle.framework, sampling.rotation
    rows = _rows_named(cycle.snapshot, names)
    started_s = framework.clock.monotonic()
    try:
        found = yield from filters.search_in_turns(
            rows, rotation.next_start, sampling.wanted(len(rows)), cycle.diagnosis
        )
    except ScheduleError:
        framework.observe("Filter", FAILED, started_s)
        raise
    finally:
        examined = filters.found + cycle.diagnosis.rejected_count
        rotation.next_start = (rotation.next_start + examined) % max(len(cycle.snapshot.order), 1)
    cycle.filtered_at_s = framework.observe("Filter", None if len(found) else Status(Code.UNSCHEDULABLE), started_s)
    return Feasible(found, examined)


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The filter result of every node. `rejected` is the status of a PreFilter that rejected the pod outright.

    `names` are the nodes that PreFilter narrowed the search to, None for all; `rows` are the feasible ones in node
    order.
    """

    rejected: Status | None
    names: frozenset[str] | None
    rows: Rows


def filter_all(cycle: Cycle) -> FilterResult:
    """As `find_feasible`, but over all nodes: no sampling, no rotation, no short cut for a nominated pod.

    Raises:
        ScheduleError: a plugin failed.
    """
    names = run_pre_filter(cycle)
    if isinstance(names, Status):
        return FilterResult(names, None, cycle.snapshot.order[:0])
    rows = _rows_named(cycle.snapshot, names)
    return FilterResult(None, names, FilterRun(cycle).search(rows, 0, len(rows), cycle.diagnosis))


def _rows_named(snapshot: Snapshot, names: frozenset[str] | None) -> Rows:
    if names is None:
        return snapshot.order
    return snapshot.order[
        np.isin(snapshot.order, [row for name in names if (row := snapshot.row_of.get(name)) is not None])
    ]


class FilterRun:
    """The filters of one attempt, over the nodes of one snapshot."""

    def __init__(self, cycle: Cycle) -> None:
        self.found = 0
        self._framework = cycle.framework
        self._state = cycle.state
        self._pod = cycle.pod
        self._snapshot = cycle.snapshot
        signature = cycle.signature
        # Where the pods like this one leave whether their last search found too few nodes.
        self._alike = cycle.framework if signature is None else signature
        self._in_bulk: Sequence[Filter | CachedFilters] = (
            self._filters if signature is None else signature.active_filters(cycle.state.skipped_filters)
        )
        self._nominated = cycle.nominated_ahead
        self._private: Snapshot | None = None
        self._counted: Snapshot | None = None

    def elsewhere(self, state: CycleState, snapshot: Snapshot) -> FilterRun:
        """The same filters on a clone of the state and a fork of the snapshot."""
        twin = copy(self)
        twin._state, twin._snapshot, twin._in_bulk = state, snapshot, self._filters
        twin._private, twin._counted = snapshot, None
        return twin

    @property
    def depends_on_usage_only(self) -> bool:
        """Whether every filter depends on the usage of a node only, not on its single pods."""
        return len(self._usage_filters) == len(self._filters)

    def _scope(self, each: Filter) -> Scope:
        return self._framework.scope_of(each.plugin.filter_scope, each.name, self._pod)

    @property
    def nominated(self) -> Mapping[int, Sequence[Pod]]:
        """The pods nominated to each node that has any, and that count for this pod."""
        return self._nominated.by_row

    def where_usage_changes(self) -> FilterRun:
        """The same filters on a fork where `add_usage` works. All of them must depend on usage only."""
        assert self.depends_on_usage_only
        twin = copy(self)
        twin._counted = self._nominated.counted(self._snapshot) if self._nominated else None
        twin._snapshot, twin._in_bulk = self._snapshot.fork_usage(), self._filters
        return twin

    def of_usage(self) -> FilterRun:
        """Only the filters whose verdicts depend on usage, on the same snapshot."""
        filters: Sequence[Filter] = [each for each in self._filters if self._scope(each) is Scope.USAGE]
        twin = copy(self)
        twin._filters = twin._in_bulk = twin._usage_filters = filters
        return twin

    def add_usage(self, rows: Rows, usage: IntArray) -> None:
        """Add usage to the rows; negative amounts remove it."""
        self._snapshot.add_usage(rows, usage)
        if self._counted is not None:
            self._counted.add_usage(rows, usage)

    @cached_property
    def _filters(self) -> Sequence[Filter]:
        return active(self._framework.filters, self._state)

    @cached_property
    def _usage_filters(self) -> Sequence[Filter]:
        """The leading filters that depend on the usage of a node only, not on its single pods."""
        return list(itertools.takewhile(lambda each: self._scope(each) <= Scope.USAGE, self._filters))

    def search(self, rows: Rows, start: int, wanted: int, diagnosis: Diagnosis) -> Rows:
        """As `search_in_turns`, without a pause. Shape: some of `rows`."""
        return run_unasked(self._search(rows, start, wanted, diagnosis, None))

    def search_in_turns(self, rows: Rows, start: int, wanted: int, diagnosis: Diagnosis) -> Steps[Rows]:
        """Rows that pass, starting at position `start` and wrapping around, until one more than `wanted` is found.

        Pauses if a filter takes long.

        Raises:
            ScheduleError: a filter failed on a node.

        Shape: some of `rows`.
        """
        turn: Turn | None = None
        if not self._framework.long_filters <= self._state.skipped_filters:
            turn = Turn(self._framework.clock)
            self._state.write(turn)
        return self._search(rows, start, wanted, diagnosis, turn)

    def _search(self, rows: Rows, start: int, wanted: int, diagnosis: Diagnosis, turn: Turn | None) -> Steps[Rows]:
        count = len(rows)
        if not self._in_bulk and not self._snapshot.closed:
            self.found = min(wanted, count)
            return rows[(start + np.arange(self.found)) % max(count, 1)]
        start %= max(count, 1)
        # A guess, which would cost a long filter more than it saves.
        is_scarce = turn is None and self._alike.is_scarce
        if is_scarce and rows is self._snapshot.order and (rejection := self._rejection_of_all(rows)) is not None:
            diagnosis.reject(rejection)
            return rows[:0]
        size = count if is_scarce else max(wanted + wanted // 8 + 1, _CHUNK_ROWS_MIN)
        parts: list[Rows] = []
        enough = False
        offset = 0
        while offset < count:
            # Where hardly any of the first nodes fit, all others are needed.
            size = size if 4 * self.found >= offset else count
            chunk = _around(rows, start + offset, min(size, count - offset))
            offset += len(chunk)
            passed, rejected = self.filter(chunk) if turn is None else (yield from self._filter_in_turns(chunk, turn))
            missing = wanted - self.found
            if len(passed) > missing:
                end = passed[missing]
                rejected = [(at, rejection.only(slice(at.searchsorted(end)))) for at, rejection in rejected]
                passed, enough = passed[:missing], True
            for _, rejection in rejected:
                if len(rejection.rows):
                    diagnosis.reject(rejection)
            parts.append(chunk[passed] if rejected else chunk[: len(passed)])
            self.found += len(passed)
            if enough:
                break
        self._alike.is_scarce = not enough
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else rows[:0]

    def _rejection_of_all(self, order: Rows) -> Rejection | None:
        """The rejection of all nodes by cached filters, if these come first and nothing else counts."""
        if self._snapshot.closed or self._nominated or not isinstance(first := self._in_bulk[0], CachedFilters):
            return None
        return first.rejection_of_all(order)

    def _filter_in_turns(self, rows: Rows, turn: Turn) -> Steps[tuple[Rows, list[tuple[Rows, Rejection]]]]:
        """As `filter`; whenever a filter is interrupted, the filters are run again after a pause, and it goes on."""
        while True:
            turn.open()
            try:
                return self.filter(rows)
            except FilterInterrupted as interrupted:
                work = interrupted.work
            finally:
                turn.close()
            yield PAUSE if work is None else Pause(work)

    def alone(self, row: int) -> Status | None:
        """The status of one node, filtered first with its nominated pods added, then without them."""
        if (closed := closed_status(self._snapshot, row)) is not None:
            return closed
        nominated = self._nominated.on(row)
        if nominated:
            status = self._beside(row, nominated)
            if status is not None:
                return status
        return self._first_rejection(row, self._state, self._snapshot)

    def filter(self, rows: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Positions of the rows that pass, and of those that each filter rejected. Shape: positions in `rows`."""
        if self._snapshot.closed and (found := among_closed(self._snapshot, rows)) is not None:
            return self._filter_open(rows, *found)
        positions: Rows = np.arange(len(rows))
        if not self._nominated:
            return self._filter(self._in_bulk, rows, positions, self._state, self._snapshot)
        is_nominated = self._nominated.column.take(rows)
        if not np.count_nonzero(is_nominated):
            return self._filter(self._in_bulk, rows, positions, self._state, self._snapshot)
        # First what may be interrupted, and is run again then.
        others, more = self._filter(self._in_bulk, rows, positions[~is_nominated], self._state, self._snapshot)
        apart, rejected = self._filter_nominated(rows, positions[is_nominated])
        return np.sort(np.concatenate((others, apart))) if len(apart) else others, rejected + more

    def _filter_open(
        self, rows: Rows, is_closed: NDArray[np.bool_], rejection: Rejection
    ) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """As `filter`, if some of the nodes are closed."""
        positions = np.flatnonzero(~is_closed)
        passed, rejected = self.filter(rows[positions])
        others = [(positions[at], each) for at, each in rejected]
        return positions[passed], [(np.flatnonzero(is_closed), rejection), *others]

    def _filter_nominated(self, rows: Rows, positions: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """As `filter`, for nodes with nominated pods: they are filtered with these pods added, then without them.

        Up to the first filter that depends on the pods themselves, adding their usage is enough.
        """
        if self._counted is None:
            self._counted = self._nominated.counted(self._snapshot)
        counting = self._usage_filters
        positions, rejected = self._filter(counting, rows, positions, self._state, self._counted)
        if self.depends_on_usage_only:
            positions, more = self._filter(counting, rows, positions, self._state, self._snapshot)
        else:
            positions, more = self._one_by_one(rows, positions)
        return positions, rejected + more

    def _one_by_one(self, rows: Rows, positions: Rows) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        rejected: list[tuple[Rows, Rejection]] = []
        passed: list[int] = []
        for position in positions.tolist():
            status = self.alone(int(rows[position]))
            if status is None:
                passed.append(position)
            else:
                at = np.array([position])
                rejected.append((at, _same_for_all(rows[at], status)))
        return np.array(passed, np.intp), rejected

    def _filter(
        self,
        filters: Sequence[Filter | CachedFilters],
        rows: Rows,
        positions: Rows,
        state: CycleState,
        snapshot: Snapshot,
    ) -> tuple[Rows, list[tuple[Rows, Rejection]]]:
        """Run the filters in order. Each filter sees only the rows that passed the ones before it."""
        rejected: list[tuple[Rows, Rejection]] = []
        left = rows if len(positions) == len(rows) else rows[positions]
        for each in filters:
            if not len(left):
                break
            if isinstance(each, CachedFilters):
                outcome = each.outcome(left)
            else:
                outcome = self._ask(each, state, snapshot, left)
            if outcome is None:
                continue
            fails, rejection = outcome
            rejected.append((positions[fails.nonzero()[0]], rejection))
            passes = (~fails).nonzero()[0]
            positions, left = positions[passes], left[passes]
        return positions, rejected

    def _ask(
        self, each: Filter, state: CycleState, snapshot: Snapshot, rows: Rows
    ) -> tuple[NDArray[np.bool_], Rejection] | None:
        rows.setflags(write=False)
        return self._observed(each, len(rows), _rejection, each, state, self._pod, snapshot, rows)

    def _first_rejection(self, row: int, state: CycleState, snapshot: Snapshot) -> Status | None:
        node = snapshot.node(row)
        for each in self._filters:
            status = self._observed(each, 1, _status, each, state, self._pod, node)
            if status is not None:
                return status
        return None

    def _observed(
        self, each: Filter, nodes: int, ask: Callable[P, OutcomeT], *args: P.args, **kwargs: P.kwargs
    ) -> OutcomeT:
        """Count and time the call of a filter for this many nodes, and turn its exception into a ScheduleError."""
        framework = self._framework
        framework.observer.count_evaluations(each.name, "Filter", framework.name, nodes)
        started_s = framework.clock.monotonic()
        try:
            outcome = ask(*args, **kwargs)
        except FilterInterrupted:
            # It has no answer yet, and is called again.
            raise
        except BaseException as error:
            doing = f'running "{each.name}" filter plugin'
            raise framework.failed(each.name, "Filter", self._pod, doing, error, started_s) from error
        framework.filtered(each.name, self._pod, started_s, outcome, nodes)
        return outcome

    def _beside(self, row: int, nominated: Sequence[Pod]) -> Status | None:
        """The status of one node with its nominated pods added; they are removed again afterwards."""
        if self._private is None:
            self._private = self._snapshot.fork()
        snapshot = self._private
        added: list[str] = []
        try:
            state = self._state.clone()
            for each in nominated:
                there = each.on_node(snapshot.name(row))
                snapshot.add_pod(row, there, readable_pod_usage(each))
                added.append(there.uid)
                self._framework.run_add_pod(state, self._pod, each, snapshot.node(row))
            return self._first_rejection(row, state, snapshot)
        except PluginError as error:
            raise ScheduleError(str(error)) from error
        finally:
            for uid in reversed(added):
                snapshot.remove_pod(row, uid)


def _rejection(
    each: Filter, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
) -> tuple[NDArray[np.bool_], Rejection] | None:
    return rejection_of(rows, each.filter(state, pod, snapshot, rows))


def _status(each: Filter, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
    status = each.filter_one(state, pod, node)
    if status is None or status.is_rejected:
        return status
    raise PluginError(failure_text(status))


def _around(rows: Rows, start: int, count: int) -> Rows:
    """This many rows from that position on, wrapping around at the end."""
    start %= len(rows)
    end = start + count
    return rows[start:end] if end <= len(rows) else np.concatenate((rows[start:], rows[: end - len(rows)]))


def _same_for_all(rows: Rows, status: Status) -> Rejection:
    return Rejection.of(rows, np.ones(len(rows), np.int64), lambda _: status)
