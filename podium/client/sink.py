"""The interfaces that a reflector delivers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from podium.objects.wire import BrokenObject

SunkT_contra = TypeVar("SunkT_contra", contravariant=True)


class Sink(Protocol[SunkT_contra]):
    """The store that a reflector fills. Each call leaves it consistent."""

    def put(self, item: SunkT_contra) -> None:
        """The object was added or modified; this is its state."""
        ...

    def drop(self, item: SunkT_contra) -> None:
        """The object was deleted; this was its last state."""
        ...

    def mark_broken(self, broken: BrokenObject, *, deleted: bool) -> None:
        """The object was added, modified or deleted, but its state cannot be decoded."""
        ...

    def take_early(self, items: Sequence[SunkT_contra]) -> None:
        """A part of a list that still arrives.

        A sink may ignore it, because `replace` follows at the end of the list.
        """
        ...

    async def replace(self, items: Sequence[SunkT_contra], broken_objects: Sequence[BrokenObject]) -> str:
        """Exactly these objects exist. Returns: an object that is older than its known state, if there is one."""
        ...


class HistoryObserver(Protocol):
    """Receives signs that the API server's history may have gone back; see `client.history`."""

    def older_version_seen(self) -> None:
        """A version lower than an earlier one was seen, which a resumed watch may give."""
        ...

    def version_went_back(self, why: str) -> None:
        """A watch has gone back to a lower version, in an event or a bookmark."""
        ...

    def watch_resumed(self) -> None:
        """A broken watch was resumed."""
        ...

    def history_lost(self, why: str) -> None:
        """A list proves that history has gone back."""
        ...
