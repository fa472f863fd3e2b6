"""Orders moves so that each pod has its room before it is evicted.

A set of moves may fit in the end and still have no order: two pods that change places each wait for the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster.snapshot import IntArray
from podium.insight.room.model import RoomModel
from podium.insight.room.search import Budget, Solution


def order_of(model: RoomModel, solution: Solution, budget: Budget) -> tuple[tuple[int, int], ...] | None:
    """Return the moves in an order in which each has its room; None if they have no such order.

    Args:
        budget: each move that is tried is a step of it.
    """
    dead_ends: set[frozenset[int]] = set()
    free = model.free.copy()

    def extend(path: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...] | None:
        if len(path) == len(solution.moves):
            return path
        # What is free depends on which moves were made, not on their order.
        indexes = frozenset(index for index, _ in path)
        if indexes in dead_ends:
            return None
        for index, row in solution.moves:
            budget.spend()
            candidate = model.movable[index]
            if index in indexes or not has_room(candidate.need, free[row]) or not model.is_spread(index, row, path):
                continue
            free[row] -= np.asarray(candidate.need, np.int64)
            free[candidate.row] += np.asarray(candidate.gain, np.int64)
            order = extend((*path, (index, row)))
            free[candidate.row] -= np.asarray(candidate.gain, np.int64)
            free[row] += np.asarray(candidate.need, np.int64)
            if order is not None:
                return order
        dead_ends.add(indexes)
        return None

    return extend(())


def has_room(need: Sequence[int], free: IntArray) -> bool:
    """Return whether one node with that much free has room. A resource that is not requested may be overcommitted."""
    return all(amount == 0 or amount <= room for amount, room in zip(need, free.tolist(), strict=True))
