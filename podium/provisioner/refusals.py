"""Why a pod cannot be placed somewhere.

Owns the value. Its text is made only if it is asked for, because most refusals are followed by a place that takes the
pod; it then tells the counts of that time, as upstream's does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A reason, as a sentence or several joined with `; `.

    Attributes:
        text: Makes the sentence.
        is_final: Whether the pod waits for another pass, and keeps its preferences until then.
    """

    text: Callable[[], str]
    is_final: bool = False

    @classmethod
    def of(cls, text: str, *, is_final: bool = False) -> Refusal:
        """A reason whose sentence is known."""
        return cls(lambda: text, is_final)


def all_of(refusals: Iterable[Refusal]) -> Refusal:
    """All of the reasons as one."""
    refusals = tuple(refusals)
    return Refusal(
        lambda: "; ".join(each.text() for each in refusals), is_final=any(each.is_final for each in refusals)
    )
