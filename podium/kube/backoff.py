"""How long to wait before asking a failing server again.

Owns the growth and the jitter. Never waits itself.

Source: client-go v0.36 tools/cache/reflector.go (800 ms to 30 s, doubling, stretched by up to its own length).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """The first delay and the longest, before jitter; and one for what only an operator can mend."""

    first_s: float = 0.8
    longest_s: float = 30.0
    refused_s: float = 15.0


class Backoff:
    """Delays that double until something goes well."""

    def __init__(self, policy: BackoffPolicy, random: Random) -> None:
        self._policy = policy
        self._random = random
        self._failures = 0

    def delay_s(self, *, at_least_s: float = 0.0) -> float:
        """The next delay; not shorter than was asked for, jittered so that clients do not come back together."""
        policy = self._policy
        grown_s = min(policy.first_s * 2.0 ** min(self._failures, 30), policy.longest_s)
        self._failures += 1
        return max(grown_s, at_least_s) * (1.0 + self._random.random())

    def reset(self) -> None:
        """Something went well."""
        self._failures = 0
