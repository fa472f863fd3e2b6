"""A cache whose entries expire."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from podium.lib.clock import Clock

Answer = TypeVar("Answer")


class ExpiringCache(Generic[Answer]):
    """Answers by question, each valid for the time that `put` was given.

    Cost: below 1 us. Beyond `size_max` answers, the oldest ones are dropped.
    """

    def __init__(self, clock: Clock, size_max: int) -> None:
        self._clock = clock
        self._size_max = size_max
        self._answers: OrderedDict[Hashable, tuple[float, Answer]] = OrderedDict()

    def get(self, question: Hashable) -> Answer | None:
        """Return the answer, if it has not expired."""
        entry = self._answers.get(question)
        if entry is None:
            return None
        good_until_s, answer = entry
        if self._clock.monotonic() < good_until_s:
            return answer
        del self._answers[question]
        return None

    def put(self, question: Hashable, answer: Answer, good_for_s: float) -> None:
        """Store an answer."""
        self._answers[question] = (self._clock.monotonic() + good_for_s, answer)
        if len(self._answers) > self._size_max:
            self._answers.popitem(last=False)

    def __len__(self) -> int:
        return len(self._answers)
