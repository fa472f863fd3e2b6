"""The interfaces that a reflector delivers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from podium.objects.wire import BrokenObject

SunkT_contra = TypeVar("SunkT_contra", contravariant=True)


class Sink(Protocol[SunkT_contra]):
    """The store that a reflector fills. Each call leaves it consistent."""

    def put(self, item: SunkT_contra) -> None:
        """Take the state of an added or modified object."""
        ...

    def drop(self, item: SunkT_contra) -> None:
        """Drop a deleted object; this was its last state."""
        ...

    def mark_broken(self, broken: BrokenObject, *, deleted: bool) -> None:
        """Mark an added, modified or deleted object whose state cannot be decoded."""
        ...

    def take_early(self, items: Sequence[SunkT_contra]) -> None:
        """Take a part of a list that still arrives.

        A sink may ignore it, because `replace` follows at the end of the list.
        """
        ...

    async def replace(self, items: Sequence[SunkT_contra], broken_objects: Sequence[BrokenObject]) -> str:
        """Replace all objects by these. Return one that is older than its known state, if there is one."""
        ...


class Version(Protocol):
    """The metadata of an object, as far as the history of the API server is about it."""

    @property
    def resource_version(self) -> str:
        """The version of the object."""
        ...


class Versioned(Protocol):
    """An object, as far as the history of the API server is about it."""

    @property
    def metadata(self) -> Version:
        """Its name, uid and version among others."""
        ...


class Aside(Protocol):
    """Takes objects aside that the store need not hold, before they are decoded."""

    def take(self, line: bytes) -> Versioned | None:
        """Take a line of a watch, and return its object; None if the line is to be decoded and stored."""
        ...

    async def release_all(self) -> None:
        """Put everything that was taken into the store: a list follows."""
        ...


class HistoryObserver(Protocol):
    """Receives signs that the API server's history may have gone back; see `client.history`."""

    def older_version_seen(self) -> None:
        """Report a version lower than an earlier one, which a resumed watch may deliver."""
        ...

    def version_went_back(self, reason: str) -> None:
        """Report that a watch has gone back to a lower version, in an event or a bookmark."""
        ...

    def watch_resumed(self) -> None:
        """Report that a broken watch was resumed."""
        ...

    def history_lost(self, reason: str) -> None:
        """Report a list that proves that history has gone back."""
        ...
