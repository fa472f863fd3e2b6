"""A span as a value: what `telemetry.otlp` sends to a collector of traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Attributes: TypeAlias = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, and what it consisted of.

    Units: times are nanoseconds since the epoch.

    Attributes:
        failure: the error that it ended with; None if there was none.
    """

    name: str
    started_ns: int
    ended_ns: int
    attributes: Attributes
    children: Sequence[Span] = ()
    failure: str | None = None

    @property
    def size(self) -> int:
        """The number of spans: this one and all below it."""
        return 1 + sum(child.size for child in self.children)
