"""Tries every order of moves in a small or very full cluster, where few moves have room at a time.

From the cluster as it is, each pod that fits on another node may be moved there, then the next, and so on, level by
level. So every set of moves that it yields has an order, and when no state is left, no set of moves helps. `search`
goes the other way round, from the pod in question, and reaches further in large clusters, but cannot end where there
is no solution.

Pods of a node that are alike count as one kind, of which the cheapest is moved first. States are sets of moves: what
is free depends on these, not on their order.

Cost: one array operation over kinds and nodes for each state, and a state for each set of moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from podium.cluster.snapshot import BoolArray, IntArray
from podium.insight.room.model import Request, RoomModel
from podium.insight.room.search import Budget
from podium.insight.room.spreading import GONE

KINDS_MAX: Final = 400
"""Up to so many kinds of pods the orders are tried."""

_State: TypeAlias = tuple[tuple[int, int], ...]
"""The moves so far, sorted: the kind, and the row."""


class ReachableStates:
    """The states that can be reached by moves, level by level.

    Args:
        request: the pod in question.
    """

    def __init__(self, model: RoomModel, request: Request, budget: Budget) -> None:
        self._model = model
        self._request = request
        self._budget = budget
        kinds: dict[tuple[object, ...], list[int]] = {}
        for index, candidate in enumerate(model.movable):
            rules = request.apart.get(index), model.counting(index)
            key = candidate.row, candidate.need, candidate.gain, candidate.kind, rules
            kinds.setdefault(key, []).append(index)
        self._members = [sorted(indexes, key=lambda index: model.movable[index].cost) for indexes in kinds.values()]
        self._paths: dict[_State, tuple[tuple[int, int], ...]] = {(): ()}

    @property
    def is_small(self) -> bool:
        """True if there are few enough kinds."""
        return len(self._members) <= KINDS_MAX

    def solutions(self) -> list[tuple[tuple[tuple[int, int], ...], int]]:
        """Return the moves of this level after which the pod fits, in order, each with its row."""
        answers = []
        for path in self._paths.values():
            free = self._free_after(path)
            moves = self._moves(path)
            rows = self._request.rows & self._model.fits(self._request.need, free)
            if self._request.spread is not None:
                rows = rows & self._request.spread.rows_after(moves)
            for row in np.flatnonzero(rows).tolist():
                if self._is_clear(row, moves):
                    answers.append((moves, row))
                    break
        return answers

    def _is_clear(self, row: int, moves: Sequence[tuple[int, int]]) -> bool:
        """Return whether all pods that keep the pod in question off the row have left, and none has come."""
        remaining = set(self._request.conflicts.get(row, ())).difference(index for index, _ in moves)
        return not remaining and self._model.is_apart(self._request, row, moves)

    def advance(self) -> bool:
        """Go to the next level, and return whether it has any states. Raises: as `Budget.spend`."""
        successors: dict[_State, tuple[tuple[int, int], ...]] = {}
        movable = [self._model.movable[members[0]] for members in self._members]
        if not movable:
            return False
        needs = np.array([candidate.need for candidate in movable], np.int64)
        rows = np.array([self._model.rows_for(candidate) for candidate in movable])
        rows[np.arange(len(movable)), [candidate.row for candidate in movable]] = False
        counts = np.array([len(members) for members in self._members])
        for state, path in self._paths.items():
            self._budget.spend()
            free = self._free_after(path)
            fits = ((free[None] >= needs[:, None]) | (needs == 0)[:, None]).all(axis=2) & rows
            # A pod moves once at most; its kind may have others that have not moved yet.
            remaining = counts.copy()
            for kind, _ in path:
                remaining[kind] -= 1
            fits[remaining == 0] = False
            self._restrict_to_spread(fits, path)
            for kind, row in np.argwhere(fits).tolist():
                successor = tuple(sorted((*state, (kind, row))))
                if successor not in successors:
                    successors[successor] = (*path, (kind, row))
        self._paths = successors
        return bool(successors)

    def _restrict_to_spread(self, fits: BoolArray, path: Sequence[tuple[int, int]]) -> None:
        """Leave the rows that the spread constraints of each kind allow after these moves. Shape: by kind and row."""
        moves = self._moves(path)
        for kind in np.flatnonzero(fits.any(axis=1)).tolist():
            index = self._members[kind][0]
            spread = self._model.spread_of(index)
            if spread is not None:
                # Pods of a kind count alike, so that it does not matter which of them leaves.
                fits[kind] &= spread.rows_after((*moves, (index, GONE)))

    def _free_after(self, path: Sequence[tuple[int, int]]) -> IntArray:
        free = self._model.free.copy()
        for kind, row in path:
            candidate = self._model.movable[self._members[kind][0]]
            free[row] -= np.asarray(candidate.need, np.int64)
            free[candidate.row] += np.asarray(candidate.gain, np.int64)
        return free

    def _moves(self, path: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        positions: dict[int, int] = {}
        moves = []
        for kind, row in path:
            position = positions.get(kind, 0)
            positions[kind] = position + 1
            moves.append((self._members[kind][position], row))
        return tuple(moves)
