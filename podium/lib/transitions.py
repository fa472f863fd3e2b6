"""The last state transitions of one object, such as a pod: a short list that errors and explanations print."""

from __future__ import annotations

from typing import NamedTuple


class Transition(NamedTuple):
    """One state transition.

    Units: `at_s` is seconds since the epoch.
    """

    at_s: float
    event: str
    old_state: str
    new_state: str
    by: str = ""


class Transitions:
    """The last few transitions; older ones are dropped.

    Attributes:
        raw: the transitions as tuples, oldest first; only `record` changes it.

    Cost: adding an entry creates one tuple; most are never read.
    """

    __slots__ = ("raw",)

    LENGTH = 16

    def __init__(self) -> None:
        self.raw: list[tuple[float, str, str, str, str]] = []

    def record(self, at_s: float, event: str, old_state: str, new_state: str, by: str = "") -> None:
        """Add a transition."""
        entries = self.raw
        entries.append((at_s, event, old_state, new_state, by))
        if len(entries) > self.LENGTH:
            del entries[0]

    @property
    def entries(self) -> tuple[Transition, ...]:
        """The transitions, oldest first."""
        return tuple(Transition(*entry) for entry in self.raw)

    def __str__(self) -> str:
        return "\n".join(
            f"{entry.at_s:.3f} {entry.event}: {entry.old_state} -> {entry.new_state}"
            + (f" ({entry.by})" if entry.by else "")
            for entry in self.entries
        )
