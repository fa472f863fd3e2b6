"""Checks whether the most recently changed objects of one kind are as in the store, or have changed as the watch says.

Owns which objects are checked: the ones that had changed last when a watch was resumed, or the ones that have changed
last by now. Objects that are unchanged prove that nothing of their kind was lost up to their versions. So the last
changes are checked first, and older ones only while the newer ones have changed since. Never changes a store.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import anyio
import msgspec
from msgspec import Struct

from podium.client.answers import check_object
from podium.client.requests import Method
from podium.objects.api_errors import Forbidden, NotFound
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import KubeObject, ObjectT, ResourceType
from podium.objects.resource_versions import is_older
from podium.objects.wire import ObjectDecoder

ObjectT_co = TypeVar("ObjectT_co", bound=KubeObject, covariant=True)

RECENT_MAX: Final = 64
_THERE_MAX: Final = 4
_SAME_MIN: Final = 2
"""Unchanged objects that prove it. One may have got the same version once more after history had gone back."""
_SILENCE_S_MAX: Final = 3.0
_LAG_S_MAX: Final = 30.0
_LOOK_AGAIN_S: Final = 0.1
_REQUEST_S_MAX: Final = 10.0
_RESUMPTIONS_MAX: Final = 32


class Requester(Protocol):
    """An `ApiSession`, as far as it is used here."""

    async def request(self, method: Method, path: str, *, deadline_s: float) -> bytes:
        """Make one request and return the body of a 2xx answer. Raises: an `ApiError`."""
        ...


class Followed(Protocol[ObjectT]):
    """A reflector, as far as it is used here."""

    @property
    def recent(self) -> deque[ObjectT]:
        """The last states that the watch has delivered, including those of deleted objects.

        The caller may replace the content.
        """
        ...

    @property
    def version(self) -> str:
        """The last known version; empty during a list from scratch."""
        ...


class ObjectLookup(Protocol[ObjectT_co]):
    """An informer, as far as it is used here."""

    def get(self, key: str) -> ObjectT_co | None:
        """Return the object with that key."""
        ...

    def list(self) -> Iterable[ObjectT_co]:
        """Return all objects."""
        ...


class HistoryLostError(Exception):
    """History has gone back. The message says what proves it."""


class _Object(Struct):
    metadata: ObjectMeta


class HistoryCheck(Generic[ObjectT]):
    """The objects of one kind whose versions show whether history has gone back."""

    def __init__(
        self,
        session: Requester,
        resource: ResourceType[ObjectT],
        followed_events: Followed[ObjectT],
        known_objects: ObjectLookup[ObjectT],
    ) -> None:
        self._session = session
        self._resource = resource
        self._decode = msgspec.json.Decoder(_Object).decode
        self._page = ObjectDecoder(resource).page
        self._followed = followed_events
        self._known = known_objects
        self._suspects: deque[Sequence[ObjectT]] = deque(maxlen=_RESUMPTIONS_MAX)

    @property
    def is_listed(self) -> bool:
        """Return whether the store can be compared: no list from scratch is in progress."""
        return bool(self._followed.version)

    def watch_resumed(self) -> None:
        """Remember which objects to check: a broken watch was resumed, perhaps on another history."""
        # Objects known before the resumption are checked: later states come from the API server's present history.
        # History may have gone back at each of several resumptions, and states between them prove nothing about the
        # first. All watches break at once, so without changes in between one resumption stands for all of them.
        latest = self._latest()
        if not self._suspects or not _is_same(self._suspects[-1], latest):
            self._suspects.append(latest)

    def listed_again(self) -> None:
        """Forget the objects to check: everything is listed again."""
        self._suspects.clear()

    async def check(self) -> bool:
        """Check the objects. Returns whether it is certain that nothing was lost.

        Raises:
            HistoryLostError: something was lost.
            ApiError: the API server cannot answer now.
        """
        suspects = tuple(self._suspects)
        is_certain = await self._goes_on(suspects or (self._latest(),))
        while self._suspects and any(self._suspects[0] is suspect for suspect in suspects):
            self._suspects.popleft()
        return is_certain

    async def _goes_on(self, suspects: Iterable[Sequence[ObjectT]]) -> bool:
        """Return whether history goes on. `suspects` are the objects known at each resumption, the latest first."""
        version, changes = self._followed.version, list[tuple[ObjectT, str]]()
        for items in suspects:
            matches = 0
            for item in items:
                try:
                    current = await self._version_of(item)
                except Forbidden:
                    break
                earlier_version = item.metadata.resource_version
                if current == earlier_version:
                    matches += 1
                    if matches == _SAME_MIN:
                        break
                    continue
                if current and is_older(current, earlier_version):
                    raise HistoryLostError(
                        f"{self._resource.kind} {item.key} was at version {earlier_version} and is at {current}"
                    )
                changes.append((item, current))
        await self._demand_not_below(version)
        return await self._is_delivered(changes)

    def _latest(self) -> Sequence[ObjectT]:
        """Return the objects that were changed or deleted last, the latest first.

        Cost: one pass over all objects if none of the last changes is the last state of its object.
        """
        recent = self._followed.recent
        current = [item for item in recent if self._is_last_state(item)]
        if not any(self._known.get(item.key) is item for item in current):
            candidates = heapq.nlargest(_THERE_MAX, self._known.list(), key=_age)[::-1]
            current = candidates + current[_THERE_MAX - RECENT_MAX :]
            recent.clear()
            recent.extend(current)
        return current[::-1]

    def _is_last_state(self, item: ObjectT) -> bool:
        """Return whether this is the current state of the object, or its last state before deletion."""
        store_item = self._known.get(item.key)
        return store_item is item or store_item is None or store_item.metadata.uid != item.metadata.uid

    async def _version_of(self, item: ObjectT) -> str:
        """Return the current version of the object with the same uid; empty if it is gone.

        Raises: an `ApiError`, also for an answer that is not about the object.
        """
        resource, meta = self._resource, item.metadata
        try:
            answer = await self._get(resource.object_path(item))
        except NotFound as error:
            if error.reason != "NotFound":
                raise
            return ""
        check_object(answer, resource.api_version, resource.kind, ObjectMeta(name=meta.name, namespace=meta.namespace))
        metadata = self._decode(answer).metadata
        # An object that is kept without its uid has its key instead.
        return metadata.resource_version if meta.uid in (metadata.uid, item.key) else ""

    async def _is_delivered(self, changes: list[tuple[ObjectT, str]]) -> bool:
        """Return whether the watch delivers these changes. A watch that is behind but makes progress gets more time."""
        version, since_s, waited_s = self._followed.version, 0.0, 0.0
        while undelivered := [item for item, version in changes if not self._knows(item, version)]:
            if version != self._followed.version:
                version, since_s = self._followed.version, waited_s
            if waited_s - since_s >= _SILENCE_S_MAX or waited_s >= _LAG_S_MAX:
                break
            await anyio.sleep(_LOOK_AGAIN_S)
            waited_s += _LOOK_AGAIN_S
        if undelivered and self._followed.version:
            raise HistoryLostError(
                f"the watch does not say that {self._resource.kind} {undelivered[0].key} has changed or gone"
            )
        return not undelivered

    def _knows(self, item: ObjectT, version: str) -> bool:
        store_item = self._known.get(item.key)
        if store_item is None or store_item.metadata.uid != item.metadata.uid:
            return True
        return bool(version) and not is_older(store_item.metadata.resource_version, version)

    async def _demand_not_below(self, version: str) -> None:
        """Refuse an API server whose version is below what was seen."""
        current = self._page(await self._get(f"{self._resource.path}?limit=1")).resource_version
        if is_older(current, version):
            raise HistoryLostError(f"{self._resource.plural} were at version {version} and are at {current}")

    async def _get(self, path: str) -> bytes:
        return await self._session.request("GET", path, deadline_s=_REQUEST_S_MAX)


def _is_same(first: Sequence[object], second: Sequence[object]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


def _age(item: KubeObject) -> tuple[int, str]:
    version = item.metadata.resource_version
    return len(version), version
