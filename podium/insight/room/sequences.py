"""Orders moves so that each pod has its room before it is evicted.

A set of moves may fit in the end and still have no order: two pods that change places each wait for the other. One more
move, of a pod that the set leaves alone, may then resolve it (`detours`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from podium.cluster.snapshot import IntArray
from podium.insight.room.model import Request, RoomModel
from podium.insight.room.search import Budget, Solution


class Sequencer:
    """Finds the order of the moves of a solution.

    Args:
        budget: each move that is tried is a step of it.
    """

    def __init__(self, model: RoomModel, requests: Sequence[Request], budget: Budget) -> None:
        self._model = model
        self._requests = requests
        self._budget = budget

    def order(self, solution: Solution) -> tuple[tuple[int, int], ...] | None:
        """Return the moves in an order in which each has its room, those with most room first; None if none has."""
        return next(self._orders(solution, dict(solution.moves), 0, self._model.free.copy(), set()), None)

    def detours(self, solution: Solution, count: int) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield orders of the moves with so many further moves of other pods among them."""
        yield from self._orders(solution, dict(solution.moves), count, self._model.free.copy(), set())

    def _orders(
        self,
        solution: Solution,
        moves: dict[int, int],
        detours: int,
        free: IntArray,
        dead_ends: set[frozenset[tuple[int, int]]],
        path: tuple[tuple[int, int], ...] = (),
    ) -> Iterator[tuple[tuple[int, int], ...]]:
        if not moves and not detours:
            if self._is_enough(solution, free):
                yield path
            return
        # The room that is left depends on which moves were made, not on their order.
        state = frozenset(path)
        if state in dead_ends:
            return
        has_order = False
        for index, row in (*moves.items(), *self._further_moves(solution, path, detours, free)):
            self._budget.spend()
            candidate = self._model.movable[index]
            if not has_room(candidate.need, free[row]):
                continue
            is_detour = index not in moves
            remaining_moves = {key: target for key, target in moves.items() if key != index}
            free[row] -= np.asarray(candidate.need, np.int64)
            free[candidate.row] += np.asarray(candidate.gain, np.int64)
            step = (index, row)
            for order in self._orders(solution, remaining_moves, detours - is_detour, free, dead_ends, (*path, step)):
                has_order = True
                yield order
            free[candidate.row] -= np.asarray(candidate.gain, np.int64)
            free[row] += np.asarray(candidate.need, np.int64)
        if not has_order:
            dead_ends.add(state)

    def _further_moves(
        self, solution: Solution, path: Sequence[tuple[int, int]], detours: int, free: IntArray
    ) -> Iterator[tuple[int, int]]:
        if not detours:
            return
        pods_in_use = {index for index, _ in (*solution.moves, *path)}
        for index, candidate in enumerate(self._model.movable):
            if index in pods_in_use:
                continue
            rows = self._model.rows_for(candidate) & self._model.fits(candidate.need, free)
            rows[candidate.row] = False
            yield from ((index, row) for row in np.flatnonzero(rows).tolist())

    def _is_enough(self, solution: Solution, free: IntArray) -> bool:
        remainder = free.copy()
        for request, row in zip(self._requests, solution.rows, strict=True):
            if not has_room(request.need, remainder[row]):
                return False
            remainder[row] -= np.asarray(request.need, np.int64)
        return True


def has_room(need: Sequence[int], free: IntArray) -> bool:
    """Return whether one node with that much free has room. A resource that is not requested may be overcommitted."""
    return all(amount == 0 or amount <= room for amount, room in zip(need, free.tolist(), strict=True))
