"""The objects of a cluster, by kind and key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Generic, cast

from podium.engine.manifests import Manifest, read_manifest, resource_of
from podium.framework.contract.handle import Lister
from podium.objects.core import Pod
from podium.objects.resource_types import PODS, KubeObject, ObjectT, ResourceType

LATER_THAN_ALL_S: Final = 4_102_444_800.0
"""2100-01-01 in seconds since the epoch: later than every date in the objects."""


class StoredObjects(Generic[ObjectT]):
    """A live view of the objects of one kind. Implements `podium.framework.contract.handle.Lister`.

    Attributes:
        handlers: called for every change; see `client.informer.Handler`.
    """

    def __init__(self, store: ObjectStore, resource: ResourceType[ObjectT]) -> None:
        self._store = store
        self._resource = resource
        self.handlers: list[Any] = []

    def add_handler(self, handler: Any) -> None:
        """Add a handler for every change from now on."""
        self.handlers.append(handler)

    def __len__(self) -> int:
        """Return the number of objects. This does not count as a read."""
        return len(self._store.objects(self._resource))

    def get(self, key: str) -> ObjectT | None:
        """Return the object with that key, or None."""
        return self._store.read(self._resource, key)

    def list(self) -> Iterable[ObjectT]:
        """Return all objects, in order of namespace and name."""
        self._store.note_read(self._resource)
        return self._store.objects(self._resource).values()

    def in_namespace(self, namespace: str) -> Iterable[ObjectT]:
        """Return the objects of one namespace."""
        return [item for item in self.list() if item.metadata.namespace == namespace]


class ObjectStore:
    """The objects of a cluster, without kinds that a scheduler does not read and pods that have ended.

    Args:
        complete_kinds: the kinds whose list is complete, even if it is empty.

    Attributes:
        now_s: the time at which questions about the objects are answered, in seconds since the epoch.

    Invariant: the objects of a kind are handed out in order of namespace and name, as an API server lists them.
    """

    def __init__(
        self,
        objects: Iterable[tuple[ResourceType[Any], KubeObject]],
        complete_kinds: Collection[ResourceType[Any]] = (),
    ) -> None:
        self._complete_kinds = frozenset(complete_kinds)
        self.now_s = LATER_THAN_ALL_S
        self._listers: dict[ResourceType[Any], StoredObjects[Any]] = {}
        self._objects: dict[str, dict[str, Any]] = {}
        self._shared: set[str] = set()
        """The paths of kinds whose objects are shared with another store."""
        self._unsorted: set[str] = set()
        self._missing: set[ResourceType[Any]] = set()
        """The kinds that plugins have read, here or in a fork, and of which there was no object."""
        for resource, item in objects:
            # A pod that has ended holds nothing on its node, so to a scheduler it does not exist.
            if not (isinstance(item, Pod) and item.has_ended):
                self.put(resource, item)

    @classmethod
    def from_objects(cls, objects: Mapping[str, dict[str, Any]]) -> ObjectStore:
        """Make a store of typed objects that are held elsewhere, by the paths of their kinds and by key."""
        store = cls(())
        store._objects = dict(objects)
        # In the order in which they came; sorted when they are first listed.
        store._shared, store._unsorted = set(objects), set(objects)
        return store

    @classmethod
    def of(cls, manifests: Iterable[Manifest], complete_kinds: Collection[ResourceType[Any]] = ()) -> ObjectStore:
        """Make a store of these objects. Pods without a scheduler name keep it empty and so are never nominated.

        Raises:
            ManifestError: an object cannot be read.
        """
        return cls(
            (
                (
                    resource,
                    read_manifest(_with_scheduler(manifest) if resource is PODS else manifest, resource),
                )
                for manifest in manifests
                if (resource := resource_of(manifest)) is not None
            ),
            complete_kinds,
        )

    def fork(self) -> ObjectStore:
        """Return a store of the same objects. Later changes of one do not affect the other.

        Cost: none at once; a copy of the objects of a kind when the first of them changes.
        """
        twin = ObjectStore((), self._complete_kinds)
        # The same set: a question is answered in a fork, and the warning about missing kinds is for its origin.
        twin._missing, twin.now_s = self._missing, self.now_s
        twin._objects, twin._unsorted = dict(self._objects), set(self._unsorted)
        # Each side copies a kind on its first change: a question changes one or two kinds of dozens.
        self._shared = set(self._objects)
        twin._shared = set(self._objects)
        return twin

    def get(self, resource: ResourceType[ObjectT], key: str) -> ObjectT | None:
        """Return the object of that kind with that key, or None."""
        return self._objects.get(resource.path, {}).get(key)

    def read(self, resource: ResourceType[ObjectT], key: str) -> ObjectT | None:
        """Return the object as `get` does, for a plugin, so that the read is noted."""
        objects = self._objects.get(resource.path)
        if not objects:
            self.note_read(resource)
            return None
        return cast("ObjectT | None", objects.get(key))

    def objects(self, resource: ResourceType[ObjectT]) -> Mapping[str, ObjectT]:
        """Return the objects of one kind by key."""
        path = resource.path
        # Sorted on the next read, because loading adds thousands of objects one by one.
        if path in self._unsorted:
            self._unsorted.discard(path)
            self._shared.discard(path)
            self._objects[path] = dict(sorted(self._objects[path].items(), key=_namespace_and_name))
        return self._objects.get(path, {})

    def put(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Add an object, or replace the one of its name."""
        objects = self._own(resource.path)
        old = objects.get(item.key)
        if old is None:
            self._unsorted.add(resource.path)
        objects[item.key] = item
        for handler in self._stored_objects(resource).handlers:
            if old is None:
                handler.on_add(item)
            else:
                handler.on_update(old, item)

    def drop(self, resource: ResourceType[ObjectT], item: ObjectT) -> None:
        """Remove an object."""
        old = self._own(resource.path).pop(item.key)
        for handler in self._stored_objects(resource).handlers:
            handler.on_delete(old)

    def forget_handlers(self) -> None:
        """Drop the handlers of all kinds, because the plugins are built again."""
        for lister in self._listers.values():
            lister.handlers.clear()

    def lister(self, resource: ResourceType[ObjectT]) -> Lister[ObjectT]:
        """Return the lister of one kind for plugins: a live view of this store."""
        return self._stored_objects(resource)

    def _stored_objects(self, resource: ResourceType[ObjectT]) -> StoredObjects[ObjectT]:
        lister = self._listers.get(resource)
        if lister is None:
            lister = self._listers[resource] = StoredObjects(self, resource)
        return lister

    @property
    def listed_kinds(self) -> Collection[ResourceType[Any]]:
        """The kinds whose listers were created, by plugins or by changes."""
        return tuple(self._listers)

    def note_read(self, resource: ResourceType[Any]) -> None:
        """Note that a plugin has read objects of the kind."""
        # An empty kind may be one that was not dumped, so that the answer rests on a guess.
        if not self._objects.get(resource.path) and resource not in self._complete_kinds:
            self._missing.add(resource)

    def missing_kinds(self) -> list[ResourceType[Any]]:
        """Return the kinds that plugins have read and that have no objects, so that answers may be wrong."""
        return list(self._missing)

    def _own(self, path: str) -> dict[str, Any]:
        """Return the objects of a kind, copied first if another store shares them."""
        if path in self._shared:
            self._shared.discard(path)
            self._objects[path] = dict(self._objects[path])
        return self._objects.setdefault(path, {})


def _with_scheduler(pod: Manifest) -> Manifest:
    """Return the pod with an empty scheduler name if it has none, to keep the decoder from filling in the default."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or spec.get("schedulerName"):
        return pod
    return {**pod, "spec": {**spec, "schedulerName": ""}}


def _namespace_and_name(entry: tuple[str, KubeObject]) -> tuple[str, str]:
    metadata = entry[1].metadata
    return metadata.namespace, metadata.name
