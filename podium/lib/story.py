"""What happened to one thing lately: a short memory that errors and explanations print."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that happened.

    Units: `at_s` is seconds since the epoch.
    """

    at_s: float
    event: str
    before: str
    after: str
    by: str = ""


class Story:
    """The last few lines; older ones are forgotten."""

    __slots__ = ("_lines",)

    LENGTH = 16

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=self.LENGTH)

    def tell(self, at_s: float, event: str, before: str, after: str, by: str = "") -> None:
        """Add a line."""
        self._lines.append(Line(at_s, event, before, after, by))

    @property
    def lines(self) -> tuple[Line, ...]:
        """Oldest first."""
        return tuple(self._lines)

    def __str__(self) -> str:
        return "\n".join(
            f"{line.at_s:.3f} {line.event}: {line.before} -> {line.after}" + (f" ({line.by})" if line.by else "")
            for line in self._lines
        )
