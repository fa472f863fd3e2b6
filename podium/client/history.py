"""Detects that the API server's history has gone back, as after a restore of etcd.

After a restore, versions start again below those seen, objects have older states, and a watch from a version that does
not exist yet stays silent until it exists, for minutes or hours. An API server that was not restarted with its etcd
even keeps listing what etcd has lost; only single objects are read from etcd. So after a broken watch, after an old
version, and at intervals, the most recently changed pods and nodes are read (`client.history_check`): they must be as
in the store, or the watch must soon deliver their changes. If not, history has gone back, and everything is listed
again.

Not detected: a history that has caught up before the check, if everything that was lost has changed again since. What
changed meanwhile is still learned if the watch of its kind broke: that is resumed from the last change, not from a
bookmark.

A watch whose versions go back, in an event or a bookmark, is such a history, too: everything is listed again at once,
and less and less often where versions keep going back, as behind a proxy that repeats old events. An old version in a
watch that was resumed from an earlier one proves nothing. Owns when to check, which is less often after checks without
a finding, and how often everything is listed again. Never changes a store.

Differs: client-go does not notice; kube-scheduler ends its process if it sees a pod on another node than before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import anyio

from podium.client.history_check import HistoryCheck, HistoryLostError
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError

log = get_logger("client")

CHECK_EVERY_S: Final = 10.0
START_OVER_EVERY_S: Final = 30.0
_START_OVER_S_MAX: Final = 120.0
_CHECK_S_MIN, _CHECK_S_MAX = 1.0, 60.0
_RESUMED_S_MIN: Final = 10.0
_WENT_BACK_S_MIN: Final = 5.0
_ASK_AGAIN_S: Final = 2.0
_FORGIVEN_AFTER_S: Final = 300.0


class RetryPause:
    """Pauses that grow while they follow each other closely."""

    def __init__(self, clock: Clock, first_s: float, longest_s: float) -> None:
        self._clock = clock
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s, self._last_s = first_s, -math.inf

    def left_s(self) -> float:
        """Return the seconds that are left of the pause."""
        return max(0.0, self._last_s + self._next_s - self._clock.monotonic())

    def begin(self) -> float:
        """Begin the next pause. Returns: its seconds."""
        now_s = self._clock.monotonic()
        is_soon = now_s - self._last_s < self._next_s + _FORGIVEN_AFTER_S
        self._next_s = min(2.0 * self._next_s, self._longest_s) if is_soon else self._first_s
        self._last_s = now_s
        return self._next_s

    def shorten(self, seconds: float) -> None:
        """Shorten the current pause to at most this."""
        self._next_s = min(self._next_s, seconds)


class History:
    """The checks of one API server's history, and the reaction to a history that has gone back.

    Args:
        kinds: the kinds to check: those that change most and matter most.
        start_over: lists everything again.
    """

    def __init__(self, clock: Clock, kinds: Sequence[HistoryCheck[Any]], start_over: Callable[[], None]) -> None:
        self._kinds = kinds
        self._start_over = start_over
        self._check_pause = RetryPause(clock, _CHECK_S_MIN, _CHECK_S_MAX)
        self._list_pause = RetryPause(clock, START_OVER_EVERY_S, _START_OVER_S_MAX)
        self._went_back_pause = RetryPause(clock, _WENT_BACK_S_MIN, _START_OVER_S_MAX)
        self._awake = anyio.Event()
        self._checking = anyio.CancelScope()
        self._is_lost = False
        self._lists_unproven = 0

    def older_version_seen(self) -> None:
        """Plan a check soon: a version has gone back, which may only be an old event."""
        self._awake.set()

    def watch_resumed(self) -> None:
        """Plan a check soon: a broken watch was resumed, perhaps on another history."""
        for kind in self._kinds:
            kind.watch_resumed()
        self._list_pause.shorten(_RESUMED_S_MIN)
        self._check_pause.shorten(_CHECK_S_MIN)
        self._awake.set()

    def version_went_back(self, reason: str) -> None:
        """List everything again: a watch has gone back to a lower version."""
        if self._lose():
            self._list_pause.shorten(self._went_back_pause.begin())
            log.warning("A watch has gone back to an older version, as when etcd is restored", why=reason)

    def history_lost(self, reason: str) -> None:
        """List everything again: something proves that history has gone back."""
        if not self._lose():
            return
        if self._lists_unproven:
            log.error("The API server still serves objects that etcd has lost: restart it", why=reason)
        else:
            log.warning("The API server's history has gone back, as when etcd is restored", why=reason)

    def _lose(self) -> bool:
        """Have everything listed again. Returns False if that was to be done already."""
        was_lost, self._is_lost = self._is_lost, True
        # A check may wait half a minute for a watch, and whatever it would find out is known.
        self._checking.cancel()
        self._awake.set()
        return not was_lost

    async def run(self) -> None:
        """Check the history when in doubt and at intervals, until cancelled."""
        while True:
            with anyio.move_on_after(CHECK_EVERY_S):
                await self._awake.wait()
            if not self._awake.is_set():
                await self._find_out()
            elif left_s := (self._list_pause if self._is_lost else self._check_pause).left_s():
                self._awake = anyio.Event()
                with anyio.move_on_after(left_s):
                    await self._awake.wait()
                self._awake.set()
            elif self._is_lost:
                self._list_all()
            else:
                self._awake = anyio.Event()
                self._check_pause.begin()
                await self._find_out()

    def _list_all(self) -> None:
        self._is_lost = False
        for kind in self._kinds:
            kind.listed_again()
        self._list_pause.begin()
        self._lists_unproven += 1
        self._start_over()
        # Check again as soon as the lists have arrived, to see whether listing has helped.
        self._check_pause.shorten(_CHECK_S_MIN)

    async def _find_out(self) -> None:
        with anyio.CancelScope() as self._checking:
            await self._check()

    async def _check(self) -> None:
        again_s = _ASK_AGAIN_S
        # A resource whose list is in progress is checked later.
        kinds = [kind for kind in self._kinds if kind.is_listed]
        try:
            if all([await kind.check() for kind in kinds]) and len(kinds) == len(self._kinds):
                self._lists_unproven = 0
            if len(kinds) == len(self._kinds):
                return
        except HistoryLostError as loss:
            self.history_lost(str(loss))
            return
        except ApiError as error:
            log.debug("Cannot check whether the API server's history has gone back", error=str(error))
            again_s = max(again_s, error.retry_after_s or 0.0)
        await anyio.sleep(again_s)
        self._check_pause.shorten(_ASK_AGAIN_S)
        self._awake.set()
