"""Finding feasible nodes: the rotating search.

Source: kubernetes pkg/scheduler/schedule_one.go (findNodesThatFitPod, findNodesThatPassFilters), v1.36.2.
Differs: nodes are filtered many at a time, in the order in which upstream examines them with `parallelism: 1`; nodes
beyond the last one that upstream would have examined are left out of the diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np

from podium.cluster import Rows, Snapshot
from podium.framework.contract.filter import OnlyRows
from podium.framework.contract.pausing import FilterInterrupted, Turn
from podium.framework.contract.status import FAILED, Code, ScheduleError, Status
from podium.framework.contract.steps import PAUSE, Pause, Steps, run_unasked
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.filter_chain import FilterChain
from podium.framework.cycle.pre_filter import run_pre_filter
from podium.framework.profile.rejection import Rejection, same_for_all

MIN_FEASIBLE_NODES = 100
MIN_PERCENTAGE_OF_NODES = 5
_CHUNK_ROWS_MIN = 128


@dataclass(slots=True)
class Rotation:
    """The position where the next search starts, so that all nodes are examined in turn. All profiles share one."""

    next_start: int = 0


class Feasible(msgspec.Struct, frozen=True):
    """The feasible nodes in the order in which they were examined. `examined_count` also counts rejected nodes."""

    rows: Rows
    examined_count: int


_NONE_PASSES: Final = Status(Code.UNSCHEDULABLE)
NONE_FEASIBLE: Final = Feasible(np.empty(0, np.intp), 0)


def count_to_find(node_count: int, percentage: int) -> int:
    """Return the number of feasible nodes at which a search stops.

    Args: `percentage` is percentageOfNodesToScore; 0 means adaptive.
    """
    if node_count < MIN_FEASIBLE_NODES:
        return node_count
    if percentage == 0:
        # Upstream's line from 50 % down to 5 % at 5,625 nodes: a large cluster offers enough nodes in a small share.
        percentage = max(50 - node_count // 125, MIN_PERCENTAGE_OF_NODES)
    return max(node_count * percentage // 100, MIN_FEASIBLE_NODES)


class Sampling(NamedTuple):
    """The part of the nodes that a search examines: where it starts, and how many feasible nodes end it.

    Attributes:
        percentage: percentageOfNodesToScore; 0 means adaptive.
        is_one_enough: nothing scores the nodes, so that the first feasible one is chosen.
    """

    rotation: Rotation
    percentage: int
    is_one_enough: bool = False

    def goal(self, node_count: int) -> int:
        """Return the number of feasible nodes at which a search among `node_count` nodes stops."""
        return 1 if self.is_one_enough else count_to_find(node_count, self.percentage)


def find_feasible(cycle: Cycle, sampling: Sampling) -> Steps[Feasible]:
    """Return the feasible nodes; the rejections of the others go into the diagnosis. Pauses if a filter takes long.

    Raises:
        ScheduleError: a plugin failed.
    """
    names = run_pre_filter(cycle)
    if isinstance(names, Status):
        return NONE_FEASIBLE
    filters = FilterChain.of(cycle)
    return on_nominated_node(cycle, filters) or (yield from search_around(cycle, filters, names, sampling))


def on_nominated_node(cycle: Cycle, filters: FilterChain) -> Feasible | None:
    """Return the node that the pod is nominated to, if it fits there: then no other node is examined."""
    row, only = cycle.snapshot.row_of.get(cycle.pod.status.nominated_node_name), cycle.state.find(OnlyRows)
    if row is None or row not in (cycle.snapshot.order if only is None else only.rows):
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
    cycle: Cycle, filters: FilterChain, names: frozenset[str] | None, sampling: Sampling
) -> Steps[Feasible]:
    """Examine nodes in turn until enough are feasible, and begin the next search behind the last one examined.

    Pauses if a filter takes long.

    Args: `names` are the only nodes to examine, None for all.

    Raises:
        ScheduleError: a plugin failed.
    """
    framework, rotation = cycle.framework, sampling.rotation
    rows, all_rows = _rows_to_search(cycle, names)
    search = RotatingSearch(cycle, filters)
    started_s = framework.clock.monotonic()
    try:
        feasible = yield from search.in_turns(rows, rotation.next_start, sampling.goal(len(all_rows)))
    except ScheduleError:
        framework.observe("Filter", FAILED, started_s)
        raise
    finally:
        examined_count = search.feasible_count + cycle.diagnosis.rejected_count
        rotation.next_start = (rotation.next_start + examined_count) % max(len(cycle.snapshot.order), 1)
    cycle.filtered_at_s = framework.observe("Filter", None if len(feasible) else _NONE_PASSES, started_s)
    return Feasible(feasible, examined_count)


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The filter result of every node. `rejection` is the status of a PreFilter that rejected the pod outright.

    `names` are the nodes that PreFilter narrowed the search to, None for all; `rows` are the feasible ones in node
    order.
    """

    rejection: Status | None
    names: frozenset[str] | None
    rows: Rows


def filter_all(cycle: Cycle) -> FilterResult:
    """Filter all nodes: without sampling, rotation, or a short cut for a nominated pod, unlike `find_feasible`.

    Raises:
        ScheduleError: a plugin failed.
    """
    names = run_pre_filter(cycle)
    if isinstance(names, Status):
        return FilterResult(names, None, cycle.snapshot.order[:0])
    rows, _ = _rows_to_search(cycle, names)
    return FilterResult(None, names, RotatingSearch(cycle, FilterChain.of(cycle)).at_once(rows, 0, len(rows)))


def _rows_to_search(cycle: Cycle, names: frozenset[str] | None) -> tuple[Rows, Rows]:
    """Return the rows to examine, and those among which they are a part: `OnlyRows` may leave some of these out.

    Those that are left out go into the diagnosis.
    """
    rows, only = _rows_named(cycle.snapshot, names), cycle.state.find(OnlyRows)
    if only is None:
        return rows, rows
    diagnosis = cycle.diagnosis
    if names is None:
        # They need no entry each: nobody has looked at them.
        if len(only.rows) < len(rows):
            diagnosis.absent = only.rejection
            diagnosis.blame(only.rejection)
        return only.rows, rows
    is_left = np.isin(rows, only.rows)
    if not is_left.all():
        diagnosis.reject(same_for_all(rows[~is_left], only.rejection))
    return rows[is_left], rows


def _rows_named(snapshot: Snapshot, names: frozenset[str] | None) -> Rows:
    if names is None:
        return snapshot.order
    return snapshot.order[
        np.isin(snapshot.order, [row for name in names if (row := snapshot.row_of.get(name)) is not None])
    ]


class RotatingSearch:
    """One search for feasible nodes. `feasible_count` is the number found so far."""

    __slots__ = ("_alike", "_cycle", "_filters", "feasible_count")

    def __init__(self, cycle: Cycle, filters: FilterChain) -> None:
        self.feasible_count = 0
        self._cycle = cycle
        self._filters = filters
        # Where the pods like this one leave how many rows their last search needed.
        self._alike = cycle.framework if cycle.signature is None else cycle.signature

    def at_once(self, rows: Rows, start: int, goal: int) -> Rows:
        """Return the rows of `in_turns` without a pause. Shape: some of `rows`."""
        return run_unasked(self._search(rows, start, goal, None))

    def in_turns(self, rows: Rows, start: int, goal: int) -> Steps[Rows]:
        """Return rows that pass, from position `start` on and wrapping around, until more than `goal` are found.

        Pauses if a filter takes long.

        Raises:
            ScheduleError: a filter failed on a node.

        Shape: some of `rows`.
        """
        turn: Turn | None = None
        framework, state = self._cycle.framework, self._cycle.state
        if not framework.long_filters <= state.skipped_filters:
            turn = Turn(framework.clock)
            state.write(turn)
        return self._search(rows, start, goal, turn)

    def _search(self, rows: Rows, start: int, goal: int, turn: Turn | None) -> Steps[Rows]:
        count, diagnosis, filters = len(rows), self._cycle.diagnosis, self._filters
        if filters.passes_all:
            self.feasible_count = min(goal, count)
            return rows[(start + np.arange(self.feasible_count)) % max(count, 1)]
        start %= max(count, 1)
        # It would cost a long filter more than it saves.
        guess = self._alike.rows_needed * 9 // 8 if turn is None else 0
        if 0 < count <= guess and (rejection := filters.rejection_of_all(rows)) is not None:
            diagnosis.reject(rejection)
            return rows[:0]
        size = max(goal + goal // 8 + 1, _CHUNK_ROWS_MIN, guess)
        rows_needed = count
        parts: list[Rows] = []
        is_goal_reached = False
        offset = 0
        while offset < count:
            # Where hardly any of the first nodes fit, all others are needed.
            size = size if 4 * self.feasible_count >= offset else count
            chunk = _around(rows, start + offset, min(size, count - offset))
            feasible, rejections = (
                filters.filter(chunk) if turn is None else (yield from self._filter_in_turns(chunk, turn))
            )
            missing = goal - self.feasible_count
            if len(feasible) > missing:
                end = int(feasible[missing])
                rejections = [
                    (row_positions, rejection.only(slice(row_positions.searchsorted(end))))
                    for row_positions, rejection in rejections
                ]
                feasible, is_goal_reached, rows_needed = feasible[:missing], True, offset + end
            offset += len(chunk)
            for _, rejection in rejections:
                if len(rejection.rows):
                    diagnosis.reject(rejection)
            parts.append(chunk[feasible] if rejections else chunk[: len(feasible)])
            self.feasible_count += len(feasible)
            if is_goal_reached:
                break
        self._alike.rows_needed = rows_needed
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else rows[:0]

    def _filter_in_turns(self, rows: Rows, turn: Turn) -> Steps[tuple[Rows, list[tuple[Rows, Rejection]]]]:
        """Filter with pauses: when a filter is interrupted, all filters run again after the pause."""
        while True:
            turn.open()
            try:
                return self._filters.filter(rows)
            except FilterInterrupted as interrupted:
                work = interrupted.work
            finally:
                turn.close()
            yield PAUSE if work is None else Pause(work)


def _around(rows: Rows, start: int, count: int) -> Rows:
    """Return this many rows from that position on, wrapping around at the end."""
    start %= len(rows)
    end = start + count
    return rows[start:end] if end <= len(rows) else np.concatenate((rows[start:], rows[: end - len(rows)]))
