"""The recent history of one thing: a short list that errors and explanations print."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """One entry of the history.

    Units: `at_s` is seconds since the epoch.
    """

    at_s: float
    event: str
    before: str
    after: str
    by: str = ""


class Story:
    """The last few entries; older ones are dropped.

    Cost: adding an entry creates one tuple; most stories are never read.
    """

    __slots__ = ("_told",)

    LENGTH = 16

    def __init__(self) -> None:
        self._told: list[tuple[float, str, str, str, str]] = []

    def tell(self, at_s: float, event: str, before: str, after: str, by: str = "") -> None:
        """Add an entry."""
        told = self._told
        told.append((at_s, event, before, after, by))
        if len(told) > self.LENGTH:
            del told[0]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The entries, oldest first."""
        return tuple(Line(*each) for each in self._told)

    def __str__(self) -> str:
        return "\n".join(
            f"{line.at_s:.3f} {line.event}: {line.before} -> {line.after}" + (f" ({line.by})" if line.by else "")
            for line in self.lines
        )
