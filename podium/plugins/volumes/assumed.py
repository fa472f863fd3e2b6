"""Assumed claims and volumes: the state that each will have once a change is written and the watch delivers it.

Owns the assumptions. Each one holds until the watch delivers a newer state of the object. Never writes to the API.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go, v1.36.2.
"""

from __future__ import annotations

from typing import Generic

from podium.framework import contract as fwk
from podium.objects.resource_types import ObjectT


class Assumed(Generic[ObjectT]):
    """A lister whose objects are overlaid with assumptions."""

    def __init__(self, lister: fwk.Lister[ObjectT]) -> None:
        self._lister = lister
        self._assumed: dict[str, ObjectT] = {}

    def get(self, key: str) -> ObjectT | None:
        """Return the object's assumed state, or else its delivered state; None if it does not exist."""
        item = self._lister.get(key)
        return self.state_of(item) if item is not None else None

    def delivered_state(self, key: str) -> ObjectT | None:
        """Return the object as the watch last delivered it."""
        return self._lister.get(key)

    def state_of(self, item: ObjectT) -> ObjectT:
        """Return the assumed state of an object, or `item`, its state in the lister, if no assumption holds."""
        if not self._assumed:
            return item
        assumption = self._assumed.get(item.key)
        if assumption is None:
            return item
        if assumption.metadata.resource_version != item.metadata.resource_version:
            del self._assumed[item.key]
            return item
        return assumption

    def all(self) -> list[ObjectT]:
        """Return the assumed states that still hold."""
        return [assumption for assumption in self._assumed.values() if self._holds(assumption)]

    def assume(self, item: ObjectT) -> None:
        """Assume this state, which must be derived from the lister's current state."""
        current = self._lister.get(item.key)
        assert current is not None, f"{item.key} is gone"
        assert current.metadata.resource_version == item.metadata.resource_version, f"{item.key} is out of sync"
        # Outdated assumptions are dropped here, too: once bound, most objects are never looked up again.
        self._assumed = {key: assumption for key, assumption in self._assumed.items() if self._holds(assumption)}
        self._assumed[item.key] = item

    def _holds(self, assumption: ObjectT) -> bool:
        current = self._lister.get(assumption.key)
        return current is not None and current.metadata.resource_version == assumption.metadata.resource_version

    def restore(self, item: ObjectT) -> None:
        """Drop the assumption of this state; do nothing if it was dropped already or replaced by a newer one."""
        assumption = self._assumed.get(item.key)
        if assumption is not None and assumption.metadata.resource_version == item.metadata.resource_version:
            del self._assumed[item.key]
