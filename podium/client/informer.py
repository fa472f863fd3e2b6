"""Informers: stores of the cluster's objects, and handlers for their changes.

Owns the stores and calls the handlers. Never decides what a change means. Objects are immutable, so they are handed out
without copying.

Source: client-go v0.36 tools/cache/shared_informer.go.
Differs: handlers are called synchronously on the loop, one after the other; they receive the first list while it
arrives, and if it breaks off, the differences of the next one; scheduling waits while a later list is processed
(`client.consistency`); an object that was deleted and created again unseen is delivered as deleted and added, not as
updated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

import anyio

from podium.client.consistency import Consistency
from podium.lib.change_log import ChangeLog
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.lib.system_clock import SystemClock
from podium.lib.turns import Turns
from podium.objects.index import Index
from podium.objects.resource_types import KubeObject, ObjectT, ResourceType
from podium.objects.resource_versions import is_older
from podium.objects.wire import BrokenObject

log = get_logger("client")

_GONE_MIN: Final = 1_000
_GONE_MAX: Final = 10_000
_GONE_PART: Final = 4
"""For how many deleted objects the version of the deletion is kept, so that an old event does not bring them back: for
a part of the number of objects, within these bounds."""

_STATES_KEPT: Final = 4096
"""How many object states a change log keeps at least."""


HandledT_contra = TypeVar("HandledT_contra", contravariant=True)


class Handler(Protocol[HandledT_contra]):
    """Receives changes. The methods are synchronous: they record the change and return."""

    def on_add(self, new: HandledT_contra, /) -> None:
        """Handle an added object."""
        ...

    def on_update(self, old: HandledT_contra, new: HandledT_contra, /) -> None:
        """Handle a change of the object, whose uid is the same."""
        ...

    def on_delete(self, old: HandledT_contra, /) -> None:
        """Handle the object's deletion; `old` is its last known state."""
        ...

    def on_broken(self, broken: BrokenObject, /) -> None:
        """Handle an object that cannot be decoded. Its earlier state, if there is one, stays in the store."""
        ...


class Informer(Generic[ObjectT]):
    """The objects of one resource, by key; reads are answered from memory.

    Invariant: a handler gets on_add, any number of on_update, and on_delete of an object in this order, and during each
    call the store already holds the new state.
    """

    def __init__(
        self,
        resource: ResourceType[ObjectT],
        on_handler_error: Callable[[str, Exception], None],
        clock: Clock | None = None,
        consistency: Consistency | None = None,
    ) -> None:
        self.resource = resource
        self._clock = clock or SystemClock()
        self._consistency = consistency or Consistency(self._clock)
        self._on_handler_error = on_handler_error
        self._items: dict[str, ObjectT] = {}
        self._by_namespace: dict[str, dict[str, ObjectT]] | None = None
        self._indexes: list[Index[ObjectT]] = []
        self._change_log: ChangeLog[ObjectT] | None = None
        self._broken: dict[str, BrokenObject] = {}
        self._gone: dict[str, str] = {}
        self._on_add: list[Callable[[ObjectT], None]] = []
        self._on_update: list[Callable[[ObjectT, ObjectT], None]] = []
        self._on_delete: list[Callable[[ObjectT], None]] = []
        self._on_broken: list[Callable[[BrokenObject], None]] = []
        self._is_synced = False
        self._synced: anyio.Event | None = None

    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Add a handler for every change. Only before the informer has started."""
        assert not self._items, "a handler that is added late would miss existing objects"
        self._on_add.append(handler.on_add)
        self._on_update.append(handler.on_update)
        self._on_delete.append(handler.on_delete)
        self._on_broken.append(handler.on_broken)

    def get(self, key: str) -> ObjectT | None:
        """Return the object with that key (`<namespace>/<name>`, or the name)."""
        return self._items.get(key)

    @property
    def by_key(self) -> Mapping[str, ObjectT]:
        """The objects by key, a live view: not to be held across an await."""
        return self._items

    def list(self) -> Iterable[ObjectT]:
        """Return all objects, a live view: not to be held across an await."""
        return self._items.values()

    def broken_objects(self) -> Iterable[BrokenObject]:
        """Return the objects that cannot be decoded as they are now; of some an earlier state is in the store."""
        return self._broken.values()

    def in_namespace(self, namespace: str) -> Iterable[ObjectT]:
        """Return the objects of one namespace, a live view. Cost: one pass over all objects, the first time only."""
        if self._by_namespace is None:
            self._by_namespace = {}
            for key, item in self._items.items():
                self._by_namespace.setdefault(item.metadata.namespace, {})[key] = item
        return self._by_namespace.get(namespace, {}).values()

    def keep(self, index: Index[ObjectT]) -> None:
        """Fill the index with the objects, and update it with every change. Handlers see it as current as the store."""
        for item in self._items.values():
            index.put(item)
        self._indexes.append(index)

    def change_log(self) -> ChangeLog[ObjectT]:
        """Return the log of object states added or removed since the first call. An update logs one of each."""
        if self._change_log is None:
            self._change_log = ChangeLog(_STATES_KEPT)
        return self._change_log

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._items)

    @property
    def is_synced(self) -> bool:
        """Return whether the first list has been delivered to the handlers."""
        return self._is_synced

    async def wait_synced(self) -> None:
        """Wait until `synced`."""
        if not self._is_synced:
            self._synced = self._synced or anyio.Event()
            await self._synced.wait()

    # ------------------------------------------------------------ what the reflector calls

    def put(self, item: ObjectT) -> None:
        """Store an added or modified object, unless it is not newer than the known state or than its deletion.

        An object without a version counts as newer, because of its place in the watch.
        """
        key, version = item.key, item.metadata.resource_version
        deletion = self._gone.get(item.metadata.uid)
        if deletion and version and not is_older(deletion, version):
            return
        old_item = self._items.get(key)
        if self._broken:
            self._broken.pop(key, None)
        if old_item is None:
            self._add(key, item)
        elif old_item.metadata.uid != item.metadata.uid:
            self.note_gone(old_item.metadata.uid, old_item.metadata.resource_version)
            self._remove(key, old_item)
            self._add(key, item)
        elif not version or is_older(old_item.metadata.resource_version, version):
            self._update(key, old_item, item)

    def drop(self, item: ObjectT) -> None:
        """Apply a deletion.

        It is ignored if it is older than the known state, or concerns an earlier object of that name.
        """
        key = item.key
        self._broken.pop(key, None)
        self.note_gone(item.metadata.uid, item.metadata.resource_version)
        old_item = self._items.get(key)
        if old_item is None or old_item.metadata.uid != item.metadata.uid:
            return
        version = item.metadata.resource_version
        if not version or not is_older(version, old_item.metadata.resource_version):
            # Handlers get the known state, because they have to undo what they have seen, which may differ from the
            # last one.
            self._remove(key, old_item)

    def knows(self, key: str, uid: str) -> bool:
        """Return whether there is a state of the object with that key, or it was deleted a short time ago."""
        return key in self._items or key in self._broken or uid in self._gone

    def note_gone(self, uid: str, version: str) -> None:
        """Note the version at which an object was deleted, so that an older event does not bring it back."""
        self._gone[uid] = version
        if len(self._gone) > min(max(_GONE_MIN, len(self._items) // _GONE_PART), _GONE_MAX):
            del self._gone[next(iter(self._gone))]

    def mark_broken(self, broken: BrokenObject, *, deleted: bool) -> None:
        """Report an object that cannot be decoded, once for each defect."""
        key = broken.key
        old_item = self._items.get(key)
        if old_item is not None and (deleted or (broken.uid and broken.uid != old_item.metadata.uid)):
            self._remove(key, old_item)
        if deleted:
            self._broken.pop(key, None)
            return
        report = self._broken.get(key)
        self._broken[key] = broken
        if report is None or (report.uid, report.detail) != (broken.uid, broken.detail):
            self._tell(self._on_broken, key, broken)

    def take_early(self, items: Sequence[ObjectT]) -> None:
        """Process a part of the first list while the rest still arrives. Parts of later lists are ignored.

        A later list must be complete first, because missing objects are removed before new ones are added.
        """
        if not self.is_synced:
            for item in items:
                self._put_listed(item.key, item)

    async def replace(self, items: Sequence[ObjectT], broken_objects: Sequence[BrokenObject]) -> str:
        """Store a complete list; missing objects were deleted, unless one of those listed has no readable name.

        Yields to the loop regularly, while scheduling waits.

        Returns:
            The first object that has gone back to an older state, with its version; empty if no object has.
        """
        turns = Turns(self._clock)
        objects: dict[str, ObjectT] = {}
        for item in items:
            objects[item.key] = item
            if turns.is_over():
                await turns.next()
        with self._consistency.changing():
            return await self._replace(objects, broken_objects, turns)

    async def _replace(
        self, objects: Mapping[str, ObjectT], broken_objects: Sequence[BrokenObject], turns: Turns
    ) -> str:
        defects = {item.key for item in broken_objects}
        for key in [key for key in self._broken if key not in objects and key not in defects]:
            del self._broken[key]
        # An object without a readable name may be any of those that seem to be missing.
        if all(item.name for item in broken_objects):
            for key, item in [
                pair for pair in self._items.items() if pair[0] not in objects and pair[0] not in defects
            ]:
                self._remove(key, item)
                if turns.is_over():
                    await turns.next()
        for defect in broken_objects:
            self.mark_broken(defect, deleted=False)
        older = ""
        for key, item in objects.items():
            old_item = self._items.get(key)
            if old_item is item:
                continue
            if not older and old_item is not None and _is_earlier(item, old_item):
                older = f"{key} at {item.metadata.resource_version}"
            self._put_listed(key, item)
            if turns.is_over():
                await turns.next()
        return older

    def set(self, item: ObjectT) -> None:
        """Store this state of an object, whatever its version: what one informer has told its handlers, for another."""
        old_item = self._items.get(item.key)
        if old_item is None:
            self._add(item.key, item)
        else:
            self._update(item.key, old_item, item)

    def remove(self, key: str) -> None:
        """Remove the object with that key, as `set` stores one."""
        self._remove(key, self._items[key])

    def set_synced(self) -> None:
        """Mark the first list as delivered."""
        self._is_synced = True
        if self._synced is not None:
            self._synced.set()

    # ------------------------------------------------------------ changes

    def _put_listed(self, key: str, item: ObjectT) -> None:
        """Apply a listed state, which, unlike one of `put`, always counts.

        When a cluster is restored from a backup, versions go back, and then stand for other states than before.
        """
        old_item = self._items.get(key)
        self._gone.pop(item.metadata.uid, None)
        if old_item is None or old_item.metadata.uid != item.metadata.uid:
            self.put(item)
        elif old_item != item:
            self._broken.pop(key, None)
            self._update(key, old_item, item)

    def _add(self, key: str, new: ObjectT) -> None:
        self._set(key, new)
        self._tell(self._on_add, key, new)

    def _update(self, key: str, old: ObjectT, new: ObjectT) -> None:
        self._set(key, new)
        self._tell(self._on_update, key, old, new)

    def _remove(self, key: str, old: ObjectT) -> None:
        del self._items[key]
        if self._by_namespace is not None:
            del self._by_namespace[old.metadata.namespace][key]
        for index in self._indexes:
            index.drop(old)
        if self._change_log is not None:
            self._change_log.append(old)
        self._tell(self._on_delete, key, old)

    def _set(self, key: str, item: ObjectT) -> None:
        if self._indexes:
            self._to_indexes(self._items.get(key), item)
        if self._change_log is not None:
            if (old_item := self._items.get(key)) is not None:
                self._change_log.append(old_item)
            self._change_log.append(item)
        self._items[key] = item
        if self._by_namespace is not None:
            self._by_namespace.setdefault(item.metadata.namespace, {})[key] = item

    def _to_indexes(self, previous: ObjectT | None, item: ObjectT) -> None:
        for index in self._indexes:
            if previous is None:
                index.put(item)
            else:
                index.replace(previous, item)

    def _tell(self, handlers: Sequence[Callable[..., None]], key: str, *change: object) -> None:
        for handler in handlers:
            try:
                handler(*change)
            except Exception as error:  # the failure of one handler must not stop the watch
                log.error("Informer handler failed", resource=self.resource.plural, object=key, exc_info=error)
                self._on_handler_error(self.resource.plural, error)


def _is_earlier(item: KubeObject, old_item: KubeObject) -> bool:
    """Return whether this is an earlier state of the same object."""
    new, old = item.metadata, old_item.metadata
    return new.uid == old.uid and is_older(new.resource_version, old.resource_version)
