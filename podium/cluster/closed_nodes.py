"""Closed nodes: nodes that take no new pods, because the node or a pod on it cannot be parsed in full.

Owns the reasons. A node stays closed until its last reason is gone; the oldest reason is shown.
"""

from __future__ import annotations

from typing import Final

from podium.objects.errors import FieldError

NODE_ITSELF: Final = ""
"""The giver of a reason that lies in the node itself; other givers are pod uids."""


class ClosedNodes:
    """Reasons by node and by giver: `NODE_ITSELF`, or the uid of a pod."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[str, str]] = {}

    def copy(self) -> ClosedNodes:
        """Return an independent copy."""
        twin = ClosedNodes()
        twin._reasons = {name: dict(reasons) for name, reasons in self._reasons.items()}
        return twin

    def why(self, node_name: str) -> str:
        """Return the reason why the node is closed; empty if it is open."""
        reasons = self._reasons.get(node_name)
        return next(iter(reasons.values())) if reasons else ""

    def has(self, node_name: str, giver: str) -> bool:
        """Return True if this giver is a reason for the node being closed."""
        return giver in self._reasons.get(node_name, ())

    def note(self, node_name: str, giver: str, reason: str) -> bool:
        """Record the giver's reason for closing the node; an empty reason drops it.

        Returns:
            Whether the shown reason has changed.
        """
        former_reason = self.why(node_name)
        reasons = self._reasons.setdefault(node_name, {})
        if reason:
            reasons[giver] = reason
        else:
            reasons.pop(giver, None)
        if not reasons:
            del self._reasons[node_name]
        return self.why(node_name) != former_reason


def closing_reason(owner: str, error: FieldError) -> str:
    """Return a reason for the Events of pods in any namespace.

    It names the field but not the object, which only the log may name.
    """
    return f"{owner} has a field that cannot be read, {error.path:.200}: {error.detail:.100}"
