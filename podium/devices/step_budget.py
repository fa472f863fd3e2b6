"""Limits a search for devices on a node, in steps: examining a device is one, a selector may take more."""

from __future__ import annotations

import math
from typing import Final

from podium.devices.errors import StepsExceededError

STEPS_MAX: Final = 500_000
"""About ten seconds."""

_STEPS_PER_TURN: Final = 8


class StepBudget:
    """The steps of the searches on the nodes of one attempt, one after the other.

    A search may take so many steps, less what selectors have taken on the nodes before: those may be thousands.

    Args:
        steps_max: 0 means any number.
    """

    __slots__ = ("_charged", "_steps_max", "_taken", "_turn_ends")

    def __init__(self, steps_max: int) -> None:
        self._steps_max = steps_max or math.inf
        self._charged = 0
        self.start_search()

    def start_search(self) -> None:
        """Begin the search on another node."""
        self._taken = self._charged
        self.start_turn()

    def take(self) -> bool:
        """Take a step. Returns whether the search should be interrupted here. Raises: StepsExceededError."""
        self._taken += 1
        if self._taken < self._turn_ends:
            return False
        if self._taken > self._steps_max:
            raise StepsExceededError
        self.start_turn()
        return True

    def start_turn(self) -> None:
        """Note that the search was interrupted."""
        self._turn_ends = min(self._taken + _STEPS_PER_TURN, self._steps_max + 1)

    def charge(self, steps: int) -> None:
        """Count steps that have been done in the place of one."""
        self._taken += steps
        self._charged += steps

    @property
    def is_turn_over(self) -> bool:
        """The next step should be interrupted."""
        return self._taken >= self._turn_ends
