"""Tracks whether the informers' stores are consistent: whether they hold one state of the cluster.

Owns which stores are being replaced in several turns of the loop, and which resources lost their place in the watch,
so that their stores are outdated until they are listed again. Scheduling waits for both: for the first as long as it
takes, because it only computes; for the second a limited time, because a list may fail for hours.

Differs: kube-scheduler keeps scheduling while a new list is processed, on nodes whose pods it has not seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from podium.lib.clock import Clock
from podium.lib.log import get_logger

log = get_logger("client")

PATIENCE_S: Final = 30.0
"""How long scheduling waits for new lists. After that it uses the stores, which still hold one state, though an old
one."""


class Consistency:
    """Says whether scheduling has to wait for consistent stores.

    Cost: 0.1 us for a check if the stores are consistent.
    """

    def __init__(self, clock: Clock) -> None:
        self.changes = 0
        """How often the replacement of a store has begun."""
        self._clock = clock
        self._changing = 0
        self._outdated: dict[str, float] = {}
        self._callback: Callable[[], None] = lambda: None

    def on_consistent(self, callback: Callable[[], None]) -> None:
        """Set the callback for when scheduling may continue."""
        self._callback = callback

    @property
    def is_consistent(self) -> bool:
        """Return whether scheduling may use the stores now."""
        return not self._changing and (not self._outdated or self.wait_s() <= 0.0)

    def wait_s(self) -> float:
        """Return how long scheduling will still wait for new lists, at most."""
        if not self._outdated:
            return 0.0
        return max(self._outdated.values()) + PATIENCE_S - self._clock.monotonic()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold scheduling back within the block. The block may yield to the loop, but must not wait for the network."""
        self.changes += 1
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            self._call_if_consistent()

    def note_outdated(self, resource: str) -> None:
        """Mark the resource as outdated until it is listed again: its store misses changes that no watch delivers."""
        if resource not in self._outdated:
            self._outdated[resource] = self._clock.monotonic()
            log.debug("Scheduling waits for a new list", resource=resource, seconds_max=PATIENCE_S)

    def current(self, resource: str) -> None:
        """Mark the resource as current: it has been listed."""
        if self._outdated.pop(resource, None) is not None:
            self._call_if_consistent()

    def _call_if_consistent(self) -> None:
        if self.is_consistent:
            self._callback()
