"""Claims and volumes as they will be, once what was decided about them has been written and heard of.

Owns assumptions only: each stands until the API server's word about the object is newer. Never writes.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go, v1.36.2.
"""

from __future__ import annotations

from typing import Generic

from podium.framework.contract.interface import Lister
from podium.objects.resource_types import ObjectT


class Assumed(Generic[ObjectT]):
    """A lister with assumptions laid over it."""

    def __init__(self, lister: Lister[ObjectT]) -> None:
        self._lister = lister
        self._assumed: dict[str, ObjectT] = {}

    def get(self, key: str) -> ObjectT | None:
        """The object as it is assumed to be."""
        known = self._lister.get(key)
        return self.seen(known) if known is not None else None

    def heard(self, key: str) -> ObjectT | None:
        """The object as the API server last had it."""
        return self._lister.get(key)

    def seen(self, known: ObjectT) -> ObjectT:
        """What is assumed of the object that the lister knows in this state."""
        if not self._assumed:
            return known
        assumed = self._assumed.get(known.key)
        if assumed is None:
            return known
        if assumed.metadata.resource_version != known.metadata.resource_version:
            del self._assumed[known.key]
            return known
        return assumed

    def assume(self, item: ObjectT) -> None:
        """Take the object to be so, made from the state that the lister knows."""
        known = self._lister.get(item.key)
        assert known is not None, f"{item.key} is gone"
        assert known.metadata.resource_version == item.metadata.resource_version, f"{item.key} is out of sync"
        self._assumed[item.key] = item

    def restore(self, item: ObjectT) -> None:
        """Take the assumption back. Harmless where it is not there any more, or has been written."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and assumed.metadata.resource_version == item.metadata.resource_version:
            del self._assumed[item.key]
