"""Timers for the queue's two periodic flushes, and pods to activate at a set time."""

from __future__ import annotations

import math
from collections.abc import Iterable

from podium.lib.clock import Clock
from podium.objects.core import Pod

LEFTOVER_PERIOD_S = 30.0


class BackoffTimer:
    """Fires once in every second of the queue's clock, in step with the rounding of backoffs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = math.floor(clock.now())

    def delay_s(self) -> float:
        """Return the seconds until the timer fires."""
        now_s = self._clock.now()
        second = math.floor(now_s)
        return second + 1 - now_s if second == self._second else 0.0

    def take(self) -> bool:
        """Return whether the timer has fired; if so, set it for the next second."""
        second = math.floor(self._clock.now())
        is_due = second != self._second
        self._second = second
        return is_due


class LeftoverTimer:
    """Fires every 30 seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = clock.monotonic() + LEFTOVER_PERIOD_S

    def delay_s(self) -> float:
        """Return the seconds until the timer fires."""
        return max(0.0, self._due_s - self._clock.monotonic())

    def take(self) -> bool:
        """Return whether the timer has fired; if so, set it for one period later."""
        now_s = self._clock.monotonic()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + LEFTOVER_PERIOD_S
        return True


class DelayedPods:
    """Pods to activate later, each at the earliest of its requested times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[str, tuple[float, Pod]] = {}
        self._first_s = math.inf

    def add(self, pods: Iterable[Pod], after_s: float) -> None:
        """Schedule the activation of the pods."""
        due_s = self._clock.monotonic() + after_s
        self._first_s = min(self._first_s, due_s)
        for pod in pods:
            entry = self._due.get(pod.uid)
            if entry is None or due_s < entry[0]:
                self._due[pod.uid] = due_s, pod

    def delay_s(self) -> float:
        """Return the seconds until the first pod is due; infinite without pods."""
        if not self._due:
            return math.inf
        return max(0.0, self._first_s - self._clock.monotonic())

    def take(self) -> list[Pod]:
        """Remove and return the pods that are due."""
        if not self._due:
            return []
        now_s = self._clock.monotonic()
        if now_s < self._first_s:
            return []
        due = [pod for due_s, pod in self._due.values() if due_s <= now_s]
        for pod in due:
            del self._due[pod.uid]
        self._first_s = min((due_s for due_s, _ in self._due.values()), default=math.inf)
        return due
