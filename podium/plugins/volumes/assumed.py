"""Assumed claims and volumes: their state as it will be once the decided change is written and seen in the watch.

Owns assumptions only. Each one holds until the watch delivers a newer state of the object. Never writes.

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
        """The object as assumed; None if it does not exist."""
        known = self._lister.get(key)
        return self.seen(known) if known is not None else None

    def heard(self, key: str) -> ObjectT | None:
        """The object as the watch last delivered it."""
        return self._lister.get(key)

    def seen(self, known: ObjectT) -> ObjectT:
        """The assumed state of an object that the lister has in this state."""
        if not self._assumed:
            return known
        assumed = self._assumed.get(known.key)
        if assumed is None:
            return known
        if assumed.metadata.resource_version != known.metadata.resource_version:
            del self._assumed[known.key]
            return known
        return assumed

    def all(self) -> list[ObjectT]:
        """The assumed states."""
        return [each for each in self._assumed.values() if self._holds(each)]

    def assume(self, item: ObjectT) -> None:
        """Assume this state, which must be made from the state that the lister has."""
        known = self._lister.get(item.key)
        assert known is not None, f"{item.key} is gone"
        assert known.metadata.resource_version == item.metadata.resource_version, f"{item.key} is out of sync"
        # Most objects are never asked for again once they are bound.
        self._assumed = {key: each for key, each in self._assumed.items() if self._holds(each)}
        self._assumed[item.key] = item

    def _holds(self, assumed: ObjectT) -> bool:
        known = self._lister.get(assumed.key)
        return known is not None and known.metadata.resource_version == assumed.metadata.resource_version

    def restore(self, item: ObjectT) -> None:
        """Drop the assumption. Harmless if it has been dropped already or has been written."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and assumed.metadata.resource_version == item.metadata.resource_version:
            del self._assumed[item.key]
