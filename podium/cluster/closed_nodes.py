"""Which nodes take no new pods, since something there cannot be read in full.

Owns the reasons. A node stays closed until the last of them is gone; the oldest is shown.
"""

from __future__ import annotations

from typing import Final

from podium.objects.errors import FieldError

ITSELF: Final = ""
"""Stands for the node among the uids of its pods."""


class ClosedNodes:
    """Reasons by node, and by what gives the reason: `ITSELF`, or the uid of a pod."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[str, str]] = {}

    def copy(self) -> ClosedNodes:
        """The same reasons, to go their own way."""
        twin = ClosedNodes()
        twin._reasons = {name: dict(reasons) for name, reasons in self._reasons.items()}
        return twin

    def why(self, node_name: str) -> str:
        """Why the node is closed; empty for one that is open."""
        reasons = self._reasons.get(node_name)
        return next(iter(reasons.values())) if reasons else ""

    def has(self, node_name: str, giver: str) -> bool:
        """Whether this is one of those because of which the node is closed."""
        return giver in self._reasons.get(node_name, ())

    def note(self, node_name: str, giver: str, why: str) -> bool:
        """Close the node for this reason, or with an empty one, no longer because of this giver.

        Returns:
            Whether the reason that is shown has changed.
        """
        before = self.why(node_name)
        reasons = self._reasons.setdefault(node_name, {})
        if why:
            reasons[giver] = why
        else:
            reasons.pop(giver, None)
        if not reasons:
            del self._reasons[node_name]
        return self.why(node_name) != before


def brief(what: str, error: FieldError) -> str:
    """A reason for the Events of pods in any namespace: the field, but not whose it is, which the log says."""
    return f"{what} has a field that cannot be read, {error.path:.200}: {error.detail:.100}"
