"""How long to wait before asking a failing server again.

Owns the growth and the jitter. Never waits itself.

Source: client-go v0.36 tools/cache/reflector.go (800 ms to 30 s, doubling, stretched by up to its own length; anew
where the last wait began more than two minutes ago).
Differs: until something has been listed, 5 s is the longest: a replica that starts during an outage is there soon
after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from podium.lib.clock import Clock

_FORGOTTEN_AFTER_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """The first delay and the longest, before jitter; and one for what only an operator can mend.

    `longest_unsynced_s` is the longest for those who know nothing yet.
    """

    first_s: float = 0.8
    longest_s: float = 30.0
    longest_unsynced_s: float = 5.0
    refused_s: float = 15.0


class Backoff:
    """Delays that double until something goes well, or nothing has gone wrong for a while."""

    def __init__(self, policy: BackoffPolicy, random: Random, clock: Clock) -> None:
        self._policy = policy
        self._random = random
        self._clock = clock
        self._failures = 0
        self._failed_at_s = clock.monotonic()

    def delay_s(self, *, at_least_s: float = 0.0, is_synced: bool = True) -> float:
        """The next delay; not shorter than was asked for, jittered so that clients do not come back together."""
        policy, now_s = self._policy, self._clock.monotonic()
        if now_s - self._failed_at_s > _FORGOTTEN_AFTER_S:
            self._failures = 0
        self._failed_at_s = now_s
        longest_s = policy.longest_s if is_synced else min(policy.longest_s, policy.longest_unsynced_s)
        grown_s = min(policy.first_s * 2.0 ** min(self._failures, 30), longest_s)
        self._failures += 1
        return max(grown_s, at_least_s) * (1.0 + self._random.random())

    def reset(self) -> None:
        """Something went well."""
        self._failures = 0
