"""The wait before the next request to a failing server.

Owns the growth and the jitter. Never waits itself.

Source: client-go v0.36 tools/cache/reflector.go (800 ms to 30 s, doubling, jittered by up to 100 %; reset if the last
wait began more than two minutes ago).
Differs: until the first list has succeeded, the longest wait is 5 s, so that a replica that starts during an outage is
ready soon after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from podium.lib.clock import Clock

_FORGOTTEN_AFTER_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """The first and the longest delay, before jitter; and a delay for errors that only an operator can fix.

    `longest_unsynced_s` is the longest delay before the first list has succeeded.
    """

    first_s: float = 0.8
    longest_s: float = 30.0
    longest_unsynced_s: float = 5.0
    refused_s: float = 15.0


class Backoff:
    """Delays that double until a request succeeds, or until no request has failed for a while."""

    def __init__(self, policy: BackoffPolicy, random: Random, clock: Clock) -> None:
        self._policy = policy
        self._random = random
        self._clock = clock
        self._failures = 0
        self._failed_at_s = clock.monotonic()

    def delay_s(self, *, at_least_s: float = 0.0, is_synced: bool = True) -> float:
        """Return the next delay; at least `at_least_s`, and jittered so that clients do not retry at the same time."""
        policy, now_s = self._policy, self._clock.monotonic()
        if now_s - self._failed_at_s > _FORGOTTEN_AFTER_S:
            self._failures = 0
        self._failed_at_s = now_s
        longest_s = policy.longest_s if is_synced else min(policy.longest_s, policy.longest_unsynced_s)
        grown_s = min(policy.first_s * 2.0 ** min(self._failures, 30), longest_s)
        self._failures += 1
        return max(grown_s, at_least_s) * (1.0 + self._random.random())

    def reset(self) -> None:
        """Start again with the first delay, after a success."""
        self._failures = 0
