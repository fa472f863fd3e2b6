"""The reason why a pod cannot be placed somewhere.

Owns the value. Its text is made only if it is asked for, because most refusals are followed by a place that takes the
pod; it then tells the counts of that time, as upstream's does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A reason, as a sentence or several joined with `; `.

    Attributes:
        text: Makes the sentence.
        is_final: Whether the pod waits for another pass, and keeps its preferences until then.
        by_pool: The reasons of each NodePool, if NodePools were asked.
        cause: Makes the cause behind the sentence, for people; empty if the sentence says it all.
    """

    text: Callable[[], str]
    is_final: bool = False
    by_pool: Mapping[str, Refusal] = field(default_factory=dict)
    cause: Callable[[], str] = str

    @classmethod
    def of(cls, text: str, *, is_final: bool = False) -> Refusal:
        """Return a reason whose sentence is known."""
        return cls(lambda: text, is_final)


def all_of(by_pool: Mapping[str, Refusal]) -> Refusal:
    """Return the reasons of several NodePools as one."""
    return Refusal(
        lambda: "; ".join(refusal.text() for refusal in by_pool.values()),
        is_final=any(refusal.is_final for refusal in by_pool.values()),
        by_pool=by_pool,
    )
