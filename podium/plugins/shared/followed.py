"""Follows the objects of a lister, so that derived state is kept up to date change by change.

Never derives anything itself. Nothing is read before it is needed, unless asked for: objects that no pod needs cost
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, Generic, Protocol, runtime_checkable

from podium.framework import contract as fwk
from podium.objects.resource_types import ObjectT


@runtime_checkable
class Following(Protocol):
    """A lister that reports changes, as informers do."""

    def add_handler(self, handler: Any) -> None:
        """Add a handler for every change from now on."""


class Followed(Generic[ObjectT]):
    """The objects of a lister, reported once, and all their later changes.

    Args:
        on_change: called with the old and the new state; one of them is None for objects that come or go.
        on_unreadable: called with each object that cannot be decoded.
        at_once: report objects as they come, before the first read: for state that takes long to derive from all of
            them together.

    Attributes:
        is_read: whether `read` was called, so that changes are reported by themselves.
    """

    def __init__(
        self,
        lister: fwk.Lister[ObjectT],
        on_change: Callable[[ObjectT | None, ObjectT | None], None],
        on_unreadable: Callable[[Any], None] = lambda _: None,
        *,
        at_once: bool = False,
    ) -> None:
        self._lister = lister
        self._on_change = on_change
        self._on_unreadable = on_unreadable
        self.is_read = self._reports_changes = False
        if isinstance(lister, Following):
            lister.add_handler(self)
            self._reports_changes = at_once and isinstance(lister, Sized) and len(lister) == 0

    def read(self) -> None:
        """Report the existing objects, once, and from then on changes as they happen."""
        if not self.is_read:
            self.is_read = True
            items = self._lister.list()
            if not self._reports_changes:
                self._reports_changes = True
                for item in items:
                    self._on_change(None, item)

    def on_add(self, new: ObjectT) -> None:
        """Report an added object."""
        if self._reports_changes:
            self._on_change(None, new)

    def on_update(self, old: ObjectT, new: ObjectT) -> None:
        """Report a changed object."""
        if self._reports_changes:
            self._on_change(old, new)

    def on_delete(self, old: ObjectT) -> None:
        """Report a deleted object."""
        if self._reports_changes:
            self._on_change(old, None)

    def on_broken(self, unreadable: Any) -> None:
        """Report an object that cannot be decoded: its earlier state, if there is one, stays in use."""
        self._on_unreadable(unreadable)
