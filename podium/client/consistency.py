"""Whether the stores hold one state of the cluster, or are on the way from one to another.

Owns who is changing a store in several turns, and which resources lost their place in the watch, so that what is known
of them is out of date until they have been listed again. Decisions wait for both: for the first as long as it takes,
since that is a matter of computing, for the second only so long, since a list may fail for hours.

Differs: kube-scheduler decides while a new list is taken in, on nodes whose pods it has not seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from podium.lib.clock import Clock
from podium.lib.log import get_logger

log = get_logger("client")

PATIENCE_S: Final = 30.0
"""How long decisions wait for new lists. What is known remains one state of the cluster, if an old one."""


class Consistency:
    """What decisions have to wait for.

    Cost: 0.1 us for a look where nothing is amiss.
    """

    def __init__(self, clock: Clock) -> None:
        self.changes = 0
        """How often a store has begun to change as a whole."""
        self._clock = clock
        self._changing = 0
        self._outdated: dict[str, float] = {}
        self._tell: Callable[[], None] = lambda: None

    def when_good(self, tell: Callable[[], None]) -> None:
        """Set what is called whenever decisions may go on."""
        self._tell = tell

    @property
    def is_good(self) -> bool:
        """Whether the stores may be decided on."""
        return not self._changing and (not self._outdated or self.wait_s() <= 0.0)

    def wait_s(self) -> float:
        """How long decisions wait for new lists yet, at most."""
        if not self._outdated:
            return 0.0
        return max(self._outdated.values()) + PATIENCE_S - self._clock.monotonic()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold decisions back within the block. It may let others run, but waits for nobody outside this process."""
        self.changes += 1
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            self._tell_if_good()

    def outdated(self, resource: str) -> None:
        """The resource has to be listed anew: what is known of it misses changes that no watch will bring."""
        if resource not in self._outdated:
            self._outdated[resource] = self._clock.monotonic()
            log.debug("decisions wait for a new list", resource=resource, seconds_max=PATIENCE_S)

    def current(self, resource: str) -> None:
        """The resource has been listed."""
        if self._outdated.pop(resource, None) is not None:
            self._tell_if_good()

    def _tell_if_good(self) -> None:
        if self.is_good:
            self._tell()
