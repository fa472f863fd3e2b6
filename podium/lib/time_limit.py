"""How long a question may take, as a value that searches look at between two steps.

Owns nothing but the moment. What was found by then is an answer, too: a search that is over catches `TimeIsUpError`,
and says that its answer is partial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from podium.lib.clock import Clock

T = TypeVar("T")


class TimeIsUpError(BaseException):
    """The time for a question is over. No exception that the code of a plugin is likely to catch."""

    def __init__(self) -> None:
        super().__init__("the time limit is over")


class TimeLimit:
    """A moment after which a search ends with what it has found. Cost: 0.1 us for a look.

    Attributes:
        is_noticed: whether a search has ended early.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ends_s = clock.monotonic() + seconds
        self.is_noticed = False
        self._facts: list[Callable[[], str]] = []

    @property
    def facts(self) -> list[str]:
        """What was found out before the answer, for the case that there will be none."""
        return [fact() for fact in self._facts]

    def note(self, fact: Callable[[], str]) -> None:
        """Remember a fact, whose text is only made if there will be no answer."""
        self._facts.append(fact)

    def is_over(self) -> bool:
        """Whether the time is up."""
        return self._clock.monotonic() >= self._ends_s

    def check(self) -> None:
        """Raises: `TimeIsUpError` if the time is up."""
        if self.is_over():
            raise TimeIsUpError

    def taken(self, items: Iterable[T]) -> Iterator[T]:
        """The items as long as the time is not up."""
        for item in items:
            if self.is_over():
                return
            yield item


class _Unlimited(TimeLimit):
    def __init__(self) -> None:
        self._ends_s = math.inf
        self.is_noticed = False
        self._facts = []

    def note(self, fact: Callable[[], str]) -> None:
        del fact

    def is_over(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNLIMITED"


UNLIMITED: Final[TimeLimit] = _Unlimited()
"""The limit of a question that may take as long as it does."""
