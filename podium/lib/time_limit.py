"""The time limit of a question, which searches check between two steps.

Owns only the deadline. The results until then are an answer, too: a search that runs out of time catches
`TimeIsUpError` and marks its answer as partial.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from podium.lib.clock import Clock

T = TypeVar("T")


class TimeIsUpError(BaseException):
    """The time for a question is over; a BaseException, since plugins rarely catch these."""

    def __init__(self) -> None:
        super().__init__("the time limit is over")


class TimeLimit:
    """A deadline at which a search ends with its results so far. Cost: 0.1 us per check.

    Attributes:
        is_noticed: whether a search has ended early.
        seconds: after how long the time is up.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ends_s = clock.monotonic() + seconds
        self.seconds = seconds
        self.is_noticed = False
        self._facts: list[Callable[[], str]] = []

    @property
    def facts(self) -> list[str]:
        """The findings before the answer, reported if the time is up before there is one."""
        return [fact() for fact in self._facts]

    @property
    def spent_s(self) -> float:
        """The time since the limit began to count."""
        return self._clock.monotonic() - self._ends_s + self.seconds

    def restart(self, seconds: float) -> None:
        """Let the time count anew from now on."""
        self.seconds = seconds
        self._ends_s = self._clock.monotonic() + seconds

    def note(self, fact: Callable[[], str]) -> None:
        """Remember a fact, whose text is only made if there will be no answer."""
        self._facts.append(fact)

    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self._clock.monotonic() >= self._ends_s

    def apart(self) -> TimeLimit:
        """Return a limit with the same end, for work whose early end leaves the answer whole: it has its own notice."""
        limit = copy.copy(self)
        limit.is_noticed = False
        return limit

    def check(self) -> None:
        """Check the time. Raises: `TimeIsUpError` if it is up."""
        if self.is_over():
            raise TimeIsUpError

    def take(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items until the time is up."""
        for item in items:
            if self.is_over():
                return
            yield item


class _Unlimited(TimeLimit):
    def __init__(self) -> None:
        self._ends_s = math.inf
        self.seconds = math.inf
        self.is_noticed = False
        self._facts = []

    def note(self, fact: Callable[[], str]) -> None:
        del fact

    def is_over(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNLIMITED"


UNLIMITED: Final[TimeLimit] = _Unlimited()
"""The limit of a question without a time limit."""
