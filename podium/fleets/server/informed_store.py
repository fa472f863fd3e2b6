"""The objects of a running cluster, as its informers hold them: no object is stored twice.

Owns the objects that are lent to a dry run, which no informer may keep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.engine.store import ObjectStore
from podium.framework.contract.handle import Lister
from podium.objects.resource_types import ObjectT, ResourceType


class InformedStore(ObjectStore):
    """A store of the informers' objects. Kinds without an informer have no objects but those that are put here.

    Differs: the objects of a kind are handed out in the order in which they came.
    """

    def __init__(self, informers: InformerSet, now_s: float) -> None:
        super().__init__(())
        self.now_s = now_s
        self._informer_set = informers
        self._informers: dict[str, Informer[Any]] = {}
        self._is_started = False

    def start(self) -> None:
        """Make no more informers, since they are about to run."""
        self._is_started = True

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """Return the informer of that kind, which also keeps the plugins' indexes."""
        return self._informer(resource) or super().lister(resource)

    def get(self, resource: ResourceType[ObjectT], key: str) -> ObjectT | None:
        """Return the object of that kind with that key, or None."""
        informer = self._informer(resource)
        return super().get(resource, key) if informer is None else informer.get(key)

    def objects(self, resource: ResourceType[ObjectT]) -> Mapping[str, ObjectT]:
        """Return the objects of one kind by key."""
        informer = self._informer(resource)
        return super().objects(resource) if informer is None else informer.by_key

    def put(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Add an object, or replace the one of its name, as if the API server had it."""
        informer = self._informer(resource)
        if informer is None:
            super().put(resource, item)
        else:
            informer.set(item)

    def drop(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Remove an object."""
        informer = self._informer(resource)
        if informer is None:
            super().drop(resource, item)
        else:
            informer.remove(item.key)

    def fork(self) -> ObjectStore:
        """Return a store of its own with the same objects. Cost: one entry for each object."""
        twin = ObjectStore.from_objects({path: dict(informer.by_key) for path, informer in self._informers.items()})
        twin.now_s = self.now_s
        return twin

    def _informer(self, resource: ResourceType[ObjectT]) -> Informer[ObjectT] | None:
        informer = self._informers.get(resource.path)
        if informer is None and not self._is_started:
            informer = self._informers[resource.path] = self._informer_set.informer(resource)
        return cast("Informer[ObjectT] | None", informer)
