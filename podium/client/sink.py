"""What a reflector needs of those it delivers to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from podium.objects.wire import BrokenObject

SunkT_contra = TypeVar("SunkT_contra", contravariant=True)


class Sink(Protocol[SunkT_contra]):
    """Where a reflector delivers; each call leaves the sink consistent."""

    def put(self, item: SunkT_contra) -> None:
        """The object is so now."""
        ...

    def drop(self, item: SunkT_contra) -> None:
        """The object was deleted; this was its last state."""
        ...

    def mark_broken(self, broken: BrokenObject, *, deleted: bool) -> None:
        """The object has changed into something that cannot be understood, or was deleted as such."""
        ...

    def take_early(self, items: Sequence[SunkT_contra]) -> None:
        """These objects are in a list that goes on. A sink may leave them to `replace`, which comes at its end."""
        ...

    async def replace(self, items: Sequence[SunkT_contra], broken: Sequence[BrokenObject]) -> str:
        """These objects, and no others, are there now. Returns: one that is older than it was known, if any."""
        ...


class Doubts(Protocol):
    """Where a reflector says that history may have gone back; see `client.history`."""

    def doubt(self) -> None:
        """An old version was seen."""
        ...

    def resumed(self) -> None:
        """A watch goes on that was broken."""
        ...

    def refute(self, why: str) -> None:
        """A list is older than what was known."""
        ...
