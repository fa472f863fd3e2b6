"""The batching window: how long to gather pods before nodes are planned for them.

Owns the window and the triggers that it has seen. Never waits: the caller reports triggers, and asks when
to look again and whether the window has ended.

Source: karpenter pkg/controllers/provisioning/batcher.go (Batcher), v1.15.0.
Differs: upstream picks at random between a trigger and the end of the window if they come at the same moment; here the
window has ended, and the trigger opens the next one.
"""

from __future__ import annotations

import enum
from typing import Final

from podium.lib.clock import Clock

IDLE_S: Final = 1.0
"""The option batch-idle-duration: the window ends after this long without a new trigger."""

MAX_S: Final = 10.0
"""The option batch-max-duration: the window ends after this long in any case."""

FIRST_TRIGGER_S: Final = 1.0
"""How long the first trigger is waited for. Not an option upstream."""


class BatchingState(enum.Enum):
    """The state of a batching window, or how the last one ended."""

    AWAITING_TRIGGER = enum.auto()
    """It has begun, and waits for the first trigger."""
    OPEN = enum.auto()
    """It gathers triggers."""
    BATCHED = enum.auto()
    """It ended with triggers: it is time to plan."""
    FRUITLESS = enum.auto()
    """It ended without a trigger, or none has begun yet."""


class BatchingWindow:
    """One batching window after another. Between two of them, one trigger is kept for the next.

    Args:
        clock: only its monotonic time is read.
    """

    def __init__(self, clock: Clock, *, idle_s: float = IDLE_S, max_s: float = MAX_S) -> None:
        self._clock = clock
        self._idle_duration_s = idle_s
        self._max_duration_s = max_s
        self._state = BatchingState.FRUITLESS
        self._uids: set[str] = set()
        self._is_trigger_kept = False
        self._idle_at_s = 0.0
        self._end_at_s = 0.0

    def begin(self) -> None:
        """Wait for the first trigger, or open at once if one was kept. The last window must have ended."""
        now_s = self._clock.monotonic()
        self._end_if_due(now_s)
        assert self.wake_at_s is None, "the last window has not ended"
        if self._is_trigger_kept:
            self._is_trigger_kept = False
            self._open(now_s)
        else:
            self._state = BatchingState.AWAITING_TRIGGER
            self._end_at_s = now_s + FIRST_TRIGGER_S

    def trigger(self, uid: str | None = None) -> None:
        """Open the window, or reset its idle duration, or be kept for the next window.

        Args:
            uid: what triggers. A second trigger with the same UID counts for nothing until a window has ended; one
                without a UID always counts.
        """
        now_s = self._clock.monotonic()
        self._end_if_due(now_s)
        # A pod triggers every 10 s while it waits. If that reset the idle time, a steady stream of them would only end
        # at MAX_S.
        if uid is not None:
            if uid in self._uids:
                return
            self._uids.add(uid)
        if self._state is BatchingState.AWAITING_TRIGGER:
            self._open(now_s)
        elif self._state is BatchingState.OPEN:
            self._idle_at_s = now_s + self._idle_duration_s
        else:
            # Upstream's channel has one slot: further triggers between two windows add nothing to the kept one.
            self._is_trigger_kept = True

    def state(self) -> BatchingState:
        """Return the state of the window now, or how the last one ended."""
        self._end_if_due(self._clock.monotonic())
        return self._state

    @property
    def wake_at_s(self) -> float | None:
        """When the window ends if no trigger comes, on the clock's monotonic time; None between two windows."""
        if self._state is BatchingState.AWAITING_TRIGGER:
            return self._end_at_s
        if self._state is BatchingState.OPEN:
            return min(self._idle_at_s, self._end_at_s)
        return None

    def _open(self, now_s: float) -> None:
        self._state = BatchingState.OPEN
        self._idle_at_s = now_s + self._idle_duration_s
        self._end_at_s = now_s + self._max_duration_s

    def _end_if_due(self, now_s: float) -> None:
        wake_at_s = self.wake_at_s
        if wake_at_s is None or now_s < wake_at_s:
            return
        is_open = self._state is BatchingState.OPEN
        self._state = BatchingState.BATCHED if is_open else BatchingState.FRUITLESS
        self._uids.clear()
