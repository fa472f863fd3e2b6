"""Decides when the scheduling loop waits for the API server, and wakes it when enough requests have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from podium.server.wakeup import WakeUp

REQUESTS_WAITING_MAX: Final = 16
"""Decisions pause when more requests than these wait: the longer they wait, the older the state that decisions use."""
_REQUESTS_WAITING_LOW: Final = 4
"""Decisions resume when no more requests than these are waiting: deciding in batches is cheaper."""
LOOK_AGAIN_S: Final = 0.25
"""A loop that waits for the API server checks again at this interval without a sign of progress: the requests it
waits for may all belong to one slow namespace."""


class Backlog:
    """The requests that wait to be sent, and the bindings that the watch has not confirmed if conflicts are avoided.

    Args:
        waiting: how many requests wait to be sent.
        unconfirmed: as `Conflicts.unconfirmed_count`.
    """

    def __init__(
        self, waiting: Callable[[], int], unconfirmed: Callable[[], int | None], *, avoids_conflicts: bool
    ) -> None:
        self._waiting = waiting
        self._unconfirmed = unconfirmed
        self._avoids_conflicts = avoids_conflicts
        self._progress = WakeUp()
        self._is_waited_for = False
        self._is_stopping = False

    def is_too_long(self) -> bool:
        """Return True if the API server must catch up before more decisions make sense.

        If conflicts are to be avoided and other schedulers are binding pods, the watch must catch up as well.
        """
        return self._exceeds(REQUESTS_WAITING_MAX)

    def unconfirmed_count(self) -> int | None:
        """Return the number of bindings that the watch has not confirmed; None if conflicts need not be avoided."""
        return self._unconfirmed() if self._avoids_conflicts else None

    async def wait_short(self) -> None:
        """Wait until few requests are left, or until `stop`."""
        self._is_waited_for = True
        while self._exceeds(_REQUESTS_WAITING_LOW):
            await self._progress.wait(LOOK_AGAIN_S)
        self._is_waited_for = False

    def tell_progress(self) -> None:
        """Note that a request has ended, and resume deciding if enough of them have."""
        if self._is_waited_for and not self._exceeds(_REQUESTS_WAITING_LOW):
            self._progress.set()

    def stop(self) -> None:
        """End the wait: no more decisions will be made."""
        self._is_stopping = True
        self._progress.set()

    def _exceeds(self, requests: int) -> bool:
        waiting = self._waiting()
        unconfirmed = self.unconfirmed_count()
        if unconfirmed is not None:
            waiting += unconfirmed
        return waiting > requests and not self._is_stopping
