"""The search for the fewest moves after which pods fit.

A pod in question is put on a node. If the node lacks room, pods of it are put elsewhere, which may need room, too,
and so on: each pod that is ejected is one move. A solution is a set of moves after which everything fits; whether
there is an order in which each move has its room beforehand, `sequences` finds out.

1. `level(moves)` yields all solutions of this many moves, each pod moved at most once, and only moves that make room
   (`_covers` yields the sets of pods that free enough without a needless one). Going through the levels from 0 on finds
   the fewest, and proves that fewer do not do.
2. If everything has a place, and topology spread still keeps the pod in question out, pods that it counts are ejected
   one by one (`_mend_skew`), each as long as the moves that are left could make the skew small enough.
3. Levels grow exponentially. So once a level takes more than its share of steps, `broad` looks for any solution: at
   each pod it tries the few best places only, and ejects only what is smaller than the pod itself; then it tries more.

Example: the pod needs 4 cpus. n1 has 2 free, and a pod of 3 there; n2 has 2 free, and a pod of 1; n3 has 1 free.
Level 1 ends without a solution: the pod of 3 fits nowhere. Level 2 moves it to n2, and the pod of 1 from there to n3.

Cost: for each pod that is put somewhere two array operations over the nodes. Steps are counted, so that a search with
a limit of steps has the same answer on every machine.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster.snapshot import BoolArray, IntArray, Rows
from podium.insight.room.model import MovablePod, Request, RoomModel
from podium.insight.room.spreading import GONE
from podium.lib.time_limit import UNLIMITED, TimeLimit

_TIME_CHECKED: Final = 64
_COMBINATIONS_PER_STEP: Final = 64
_MENDERS_PER_PLACE: Final = 4
"""How many pods that a spread counts a search of limited breadth ejects, by the places that it tries for each pod."""


class StepsAreOverError(Exception):
    """The search has taken as many steps as it may."""


@dataclass(slots=True)
class Budget:
    """The steps that a search may take, within a time limit.

    Attributes:
        steps_max: how many steps may be taken until `StepsAreOverError`.
    """

    limit: TimeLimit = UNLIMITED
    steps_max: int = 2**62
    steps: int = 0

    def spend(self, steps: int = 1) -> None:
        """Take steps.

        Raises:
            StepsAreOverError: there were too many.
            TimeIsUpError: the time is over.
        """
        self.steps += steps
        if self.steps > self.steps_max:
            raise StepsAreOverError
        if self.steps % _TIME_CHECKED < steps:
            self.limit.check()


@dataclass(frozen=True, slots=True)
class Solution:
    """Moves after which everything fits.

    Attributes:
        moves: by index of the movable pod, the row that it goes to.
        rows: the row of each pod in question.
    """

    moves: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """A pod that needs a place: the number of a pod in question, or the index of a pod that was ejected.

    Attributes:
        origin: the row that it may not come back to; -1 if there is none.
    """

    number: int
    origin: int
    is_request: bool
    need: IntArray
    rows: BoolArray
    size: float


@dataclass(slots=True)
class RoomSearch:
    """The search in one model.

    Attributes:
        is_cut: whether more moves than the last level allowed may have led to further solutions.
    """

    model: RoomModel
    requests: Sequence[Request]
    budget: Budget
    is_cut: bool = False
    _free: IntArray = field(init=False)
    _targets: dict[int, int] = field(default_factory=dict)
    _request_rows: dict[int, int] = field(default_factory=dict)
    _breadth: int = 0
    _moves_max: int = 0
    _items: dict[int, _Item] = field(default_factory=dict)
    _menders: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    """By the domains of the row of a pod in question: the pods that may be ejected for its topology spread."""

    def __post_init__(self) -> None:
        """Start with the nodes as they are."""
        self._free = self.model.free.copy()

    # ------------------------------------------------------------ the two ways to search

    def level(self, moves: int) -> Iterator[Solution]:
        """Yield all solutions with exactly this number of moves. Raises: as `Budget.spend`."""
        self._breadth, self.is_cut = 0, False
        yield from (solution for solution in self._solutions(moves) if len(solution.moves) == moves)

    def broad(self, moves_max: int, breadth: int) -> Iterator[Solution]:
        """Yield solutions of up to this many moves, with few places per pod. Raises: as `Budget.spend`."""
        self._breadth = breadth
        yield from self._solutions(moves_max)

    def _solutions(self, moves_max: int) -> Iterator[Solution]:
        # A search that was given up amid its steps must not leave anything behind.
        self._free = self.model.free.copy()
        self._targets.clear()
        self._request_rows.clear()
        self._items.clear()
        self._moves_max = moves_max
        items = [
            _Item(number, -1, True, np.asarray(request.need, np.int64), request.rows, request.size)
            for number, request in enumerate(self.requests)
        ]
        for _ in self._place(tuple(items), moves_max):
            for _ in self._mend_skew(0):
                rows = tuple(self._request_rows[number] for number in range(len(self.requests)))
                moves = tuple(sorted(self._targets.items()))
                pairs = zip(self.requests, rows, strict=True)
                if all(self.model.is_apart(request, row, moves) for request, row in pairs):
                    yield Solution(moves, rows)

    def _mend_skew(self, start: int) -> Iterator[None]:
        """Yield when topology spread lets the pod in question in, as it is or after moves of pods that it counts.

        Args:
            start: of these pods, those from this one on may be ejected: each set of them is tried in one order.
        """
        request, row = self.requests[0], self._request_rows[0]
        spread, moves = request.spread, tuple(self._targets.items())
        if spread is None or spread.allows(row, moves):
            yield
            return
        menders = self._menders_of(row)
        count = self._moves_max - len(self._targets)
        if not spread.allows(row, moves, count):
            self.is_cut |= any(index not in self._targets for index in menders)
            return
        for number, index in enumerate(menders[start:], start):
            if index in self._targets or self._is_like_one_that_stays(menders, number):
                continue
            self._eject(index)
            for _ in self._place((self._item_of(index),), count - 1):
                yield from self._mend_skew(number + 1)
            self._take_back(index)

    def _menders_of(self, row: int) -> list[int]:
        """Return the movable pods that the spread of the pod in question counts; pods alike side by side."""
        spread = self.requests[0].spread
        assert spread is not None
        place, movable = spread.place(row), self.model.movable
        if place not in self._menders:
            # Those of its own domain first: they help wherever they go.
            self._menders[place] = sorted(
                spread.counted_pods,
                key=lambda index: (spread.place(movable[index].row) != place, movable[index].size, *self._look(index)),
            )
        menders = self._menders[place]
        return menders[: self._breadth * _MENDERS_PER_PLACE] if self._breadth else menders

    def _is_like_one_that_stays(self, menders: Sequence[int], number: int) -> bool:
        former = menders[number - 1] if number else None
        if former is None or former in self._targets:
            return False
        return self._look(former)[:-1] == self._look(menders[number])[:-1]

    def _look(self, index: int) -> tuple[object, ...]:
        """Return what makes pods alike, and at last what they cost."""
        candidate = self.model.movable[index]
        return candidate.row, candidate.need, candidate.gain, candidate.kind, self._rules_about(index), candidate.cost

    def _eject(self, index: int) -> None:
        # Undone by `_take_back` instead of copied: most places lead nowhere.
        self._free[self.model.movable[index].row] += np.asarray(self.model.movable[index].gain, np.int64)
        self._targets[index] = GONE

    def _take_back(self, index: int) -> None:
        self._free[self.model.movable[index].row] -= np.asarray(self.model.movable[index].gain, np.int64)
        del self._targets[index]

    # ------------------------------------------------------------ one pod after the other

    def _place(self, items: tuple[_Item, ...], count: int) -> Iterator[None]:
        """Put the items somewhere with up to `count` more moves; yield whenever all of them have a place."""
        if not items:
            yield
            return
        self.budget.spend()
        item, later_items = items[0], items[1:]
        for row, ejected_pods in self._places(item, count):
            self._free[row] -= item.need
            for index in ejected_pods:
                self._eject(index)
            self._note_place(item, row)
            # The largest first: what is hard to place fails early.
            next_items = (*map(self._item_of, ejected_pods), *later_items)
            yield from self._place(tuple(sorted(next_items, key=_turn)), count - len(ejected_pods))
            self._forget_place(item)
            for index in ejected_pods:
                self._take_back(index)
            self._free[row] += item.need

    def _note_place(self, item: _Item, row: int) -> None:
        if item.is_request:
            self._request_rows[item.number] = row
        else:
            self._targets[item.number] = row

    def _forget_place(self, item: _Item) -> None:
        if item.is_request:
            del self._request_rows[item.number]
        else:
            self._targets[item.number] = GONE

    def _item_of(self, index: int) -> _Item:
        item = self._items.get(index)
        if item is None:
            candidate = self.model.movable[index]
            rows, need = self.model.rows_for(candidate), np.asarray(candidate.need, np.int64)
            if (spread := self.model.spread_of(index)) is not None:
                # Its own spread may let it go to more rows after the other moves.
                others_max = 0 if self._breadth else self._moves_max - 1
                allowed_rows = rows & spread.rows_after([(index, GONE)], others_max)
                self.is_cut |= bool((rows & ~allowed_rows).any())
                rows = allowed_rows
            item = _Item(index, candidate.row, False, need, rows, candidate.size)
            self._items[index] = item
        return item

    # ------------------------------------------------------------ the places of one pod

    def _places(self, item: _Item, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield rows for the item with the pods to eject there, the most promising first."""
        rows = item.rows if not item.is_request else self._rows_within_skew(item, count)
        has_room = self.model.fits(item.need, self._free)
        conflicts = self.requests[item.number].conflicts if item.is_request else {}
        direct = self._without_origin(item, rows & has_room)
        if conflicts:
            direct = direct[~np.isin(direct, list(conflicts))]
        direct = direct[np.argsort(self._slack(direct, item.need), kind="stable")]
        if self._breadth:
            direct = direct[: self._breadth]
        yield from ((row, ()) for row in direct.tolist())
        short = rows & ~has_room
        if conflicts:
            short[list(conflicts)] |= rows[list(conflicts)]
        yield from self._places_after_moves(item, self._without_origin(item, short), count, conflicts)

    def _without_origin(self, item: _Item, rows: BoolArray) -> Rows:
        numbers = np.flatnonzero(rows)
        return numbers if item.origin < 0 else numbers[numbers != item.origin]

    def _rows_within_skew(self, item: _Item, count: int) -> BoolArray:
        """Return the rows of a pod in question that its topology spread may allow after so many moves."""
        rows, spread = self._rows_in_turn(item), self.requests[item.number].spread
        if spread is None:
            return rows
        allowed_rows = rows & spread.rows_after((), count)
        self.is_cut |= bool((rows & ~allowed_rows).any()) and bool(spread.counted_pods)
        return allowed_rows

    def _rows_in_turn(self, item: _Item) -> BoolArray:
        """Return the rows of a pod in question; of two alike ones the second comes to no earlier row."""
        number = item.number
        if number == 0 or self.requests[number].need != self.requests[number - 1].need:
            return item.rows
        former_row = self._request_rows.get(number - 1, 0)
        rows = item.rows.copy()
        rows[:former_row] = False
        return rows

    def _slack(self, rows: Rows, need: IntArray) -> NDArray[np.float64]:
        """Return by row how much would stay free, as a share, summed over the resources."""
        scale = np.maximum(self.model.free.max(axis=0), 1)
        remainder = (self._free[rows] - need) / scale
        return np.asarray(remainder[:, 1:].sum(axis=1))

    def _places_after_moves(
        self, item: _Item, rows: Rows, count: int, conflicts: Mapping[int, tuple[int, ...]]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        if not len(rows):
            return
        # Rows that stay too small without any movable pod are never looked at again.
        total = self.model.top_gains(2**31)
        possible = self.model.fits(item.need, self._free[rows] + total[rows])
        if conflicts:
            possible |= np.isin(rows, list(conflicts))
        rows = rows[possible]
        if count == 0:
            self.is_cut |= bool(len(rows))
            return
        within = self.model.fits(item.need, self._free[rows] + self.model.top_gains(count)[rows])
        if conflicts:
            within |= np.isin(rows, list(conflicts))
        # What needs more moves here, and what more moves than these would offer, is left to a later level.
        if not self.is_cut:
            self.is_cut = bool((~within).any()) or any(len(self.model.on_row[row]) > count for row in rows.tolist())
        rows = rows[within]
        lack = np.maximum(item.need - self._free[rows], 0) / np.maximum(item.need, 1)
        rows = rows[np.argsort(lack.sum(axis=1), kind="stable")]
        places = self._covers_of(item, rows.tolist(), count, conflicts)
        if not self._breadth:
            yield from places
            return
        # Fewer and smaller pods first: each needs a place again.
        ranking = sorted(places, key=lambda place: (len(place[1]), self._total_size(place[1])))
        yield from ranking[: self._breadth]

    def _total_size(self, indexes: Sequence[int]) -> float:
        return sum(self.model.movable[index].size for index in indexes)

    def _covers_of(
        self, item: _Item, rows: Sequence[int], count: int, conflicts: Mapping[int, tuple[int, ...]]
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        for row in rows:
            # Those that have left for another pod in question are out of the way.
            fixed_pods = tuple(index for index in conflicts.get(row, ()) if index not in self._targets)
            # Pods of other nodes of the domain leave fewer moves for those of this one.
            self.is_cut |= len({*fixed_pods, *self.model.on_row[row]}) > count
            if len(fixed_pods) > count:
                continue
            lack = np.where(item.need > 0, item.need - self._free[row], 0).tolist()
            for index in fixed_pods:
                # Those of other nodes of its domain leave no room here.
                if self.model.movable[index].row == row:
                    lack = [amount - gain for amount, gain in zip(lack, self.model.movable[index].gain, strict=True)]
            for cover in self._covers(row, lack, count - len(fixed_pods), item, fixed_pods):
                yield row, (*fixed_pods, *cover)

    def _covers(
        self, row: int, lack: Sequence[int], count: int, item: _Item, fixed_pods: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        """Yield the sets of up to `count` pods of the row that free what is lacking, without a needless pod."""
        columns = [column for column, amount in enumerate(lack) if amount > 0]
        if not columns:
            yield ()
            return
        amounts = tuple(lack[column] for column in columns)
        candidates = self._candidates(row, columns, amounts, item, fixed_pods)
        gains = [tuple(self.model.movable[index].gain[column] for column in columns) for index in candidates]
        for size in range(1, min(count, len(candidates)) + 1):
            yield from self._combinations(candidates, gains, amounts, size)

    def _candidates(
        self, row: int, columns: Sequence[int], amounts: Sequence[int], item: _Item, fixed_pods: tuple[int, ...]
    ) -> list[int]:
        movable = self.model.movable
        indexes = [
            index
            for index in self.model.on_row[row]
            if index not in self._targets and index not in fixed_pods and any(movable[index].gain[c] for c in columns)
        ]
        if self._breadth:
            # Smaller ones only, so that chains of ejected pods end.
            indexes = [index for index in indexes if movable[index].size < item.size]

        def order(index: int) -> tuple[object, ...]:
            candidate = movable[index]
            share = sum(min(candidate.gain[c] / amount, 1.0) for c, amount in zip(columns, amounts, strict=True))
            return -share, candidate.need, candidate.kind, self._rules_about(index), candidate.cost

        return sorted(indexes, key=order)

    def _rules_about(self, index: int) -> tuple[object, ...]:
        """Return the labels that the pod must not share with each pod in question, and which spreads count it."""
        apart = [sorted(request.apart.get(index, ())) for request in self.requests]
        return apart, self.model.counting(index)

    def _combinations(
        self, candidates: Sequence[int], gains: Sequence[tuple[int, ...]], amounts: tuple[int, ...], size: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield the sets of that size; of pods alike only the cheapest, which stand first."""
        ahead = _best_ahead(gains, size)
        work = 0

        def extend(start: int, lack: tuple[int, ...], count: int) -> Iterator[tuple[int, ...]]:
            nonlocal work
            last: tuple[object, ...] | None = None
            for position in range(start, len(candidates) - count + 1):
                work += 1
                if work % _COMBINATIONS_PER_STEP == 0:
                    self.budget.spend()
                if any(amount > best for amount, best in zip(lack, ahead[count][position], strict=True)):
                    return
                candidate = self.model.movable[candidates[position]]
                look = candidate.need, candidate.gain, candidate.kind, self._rules_about(candidates[position])
                if look == last:
                    continue
                last = look
                remainder = tuple(a - gain for a, gain in zip(lack, gains[position], strict=True))
                if count == 1:
                    if all(amount <= 0 for amount in remainder):
                        yield (position,)
                    continue
                if all(amount <= 0 for amount in remainder):
                    continue  # one less would do
                yield from ((position, *others_of) for others_of in extend(position + 1, remainder, count - 1))

        for positions in extend(0, amounts, size):
            if _is_minimal([gains[position] for position in positions], amounts):
                yield tuple(candidates[position] for position in positions)


def _turn(item: _Item) -> tuple[bool, float]:
    return not item.is_request, -item.size


def _best_ahead(gains: Sequence[tuple[int, ...]], size: int) -> list[list[tuple[int, ...]]]:
    """Return by number of pods and by position the most that so many pods from there on may free, by column."""
    best: list[list[tuple[int, ...]]] = [[()] * len(gains) for _ in range(size + 1)]
    columns: list[list[int]] = [[] for _ in gains[0]] if gains else []
    for start in reversed(range(len(gains))):
        for amounts, gain in zip(columns, gains[start], strict=True):
            insort(amounts, gain)
        for count in range(1, size + 1):
            best[count][start] = tuple(sum(amounts[-count:]) for amounts in columns)
    return best


def _is_minimal(gains: Sequence[tuple[int, ...]], amounts: Sequence[int]) -> bool:
    totals = [sum(column) for column in zip(*gains, strict=True)]
    return not any(
        all(total - gain >= amount for total, gain, amount in zip(totals, single, amounts, strict=True))
        for single in gains
    )


def impossible_because(model: RoomModel, requests: Sequence[Request]) -> str:
    """Return why no set of moves can help, if amounts alone prove it; "" if they do not."""
    total = np.maximum(model.free, 0).sum(axis=0)
    needs = np.array([request.need for request in requests], np.int64).sum(axis=0)
    # Not of devices: a pod that moves may give back one that others select and take one that they do not.
    for name, amount, need in zip(("pods", *model.resources), total.tolist(), needs.tolist(), strict=False):
        if need > amount:
            return f"all nodes together have less {name} free than is asked for, and moves free none"
    for request in requests if model.is_exact else ():
        room = model.fits(request.need, model.free + model.top_gains(2**31))
        if not (request.rows & room).any():
            return f"on no node would {request.pod.key} fit if all pods that may be moved were gone"
    return ""


def size_of(moves: Sequence[tuple[int, int]], movable: Sequence[MovablePod]) -> tuple[int, int, int, int]:
    """Return the cost of moves: their number, bytes, priorities and restarts, to be compared in this order."""
    costs = [movable[index].cost for index, _ in moves]
    return len(moves), sum(cost[0] for cost in costs), sum(cost[1] for cost in costs), sum(cost[2] for cost in costs)
