"""The next attempts at the gangs of a rehearsal that did not fit.

No event brings such an attempt forward. A gang of a PodGroup of Kubernetes waits as one entry of the queue, and is
tried again whenever its backoff ends; the members of a gang of Coscheduling are, too, once the plugin looks again.
Backoffs are counted as if the first attempt were that of the rehearsal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from podium.engine.gang_story import UPSTREAM
from podium.engine.gangs import Gang
from podium.objects.core import Pod
from podium.plugins.contrib.coscheduling.gangs import backoff_s
from podium.queues import PodBackoff

_LOOK_S: Final = 0.05
"""Coscheduling looks once in a second which backoffs have ended; the part of the second is unknown."""
_EPSILON_S: Final = 0.001
_FAILURES_COUNTED: Final = 20


@dataclass(slots=True)
class _Retry:
    """The next attempt at one gang.

    Attributes:
        at_s: its time in seconds since the epoch.
        failure_count: the number of attempts that have failed.
        state: the state of the world at the last of them; in the same state the gang fails again.
        is_planned: whether the rehearsal makes this attempt; others fail for certain.
    """

    gang: Gang
    at_least_s: float
    at_s: float
    failure_count: int
    state: object
    is_planned: bool = False


class GangRetries:
    """The next attempts, by the key of the gang."""

    def __init__(self, backoff: PodBackoff) -> None:
        self._backoff = backoff
        self._retries: dict[str, _Retry] = {}

    def backs_off(self, gang: Gang, now_s: float) -> bool:
        """Return whether the gang is not tried before a later time."""
        retry = self._retries.get(gang.key)
        return retry is not None and now_s < retry.at_s

    def note_failure(self, gang: Gang, now_s: float, state: object, at_least_s: float) -> None:
        """Note that the gang did not fit.

        Args:
            at_least_s: the shortest backoff of a gang of Coscheduling.
        """
        retry = self._retries.get(gang.key)
        count = 1 if retry is None else retry.failure_count + 1
        self._retries[gang.key] = _Retry(gang, at_least_s, self._after(gang, now_s, count, at_least_s), count, state)

    def forget(self, gang: Gang) -> None:
        """Note that the gang fits."""
        self._retries.pop(gang.key, None)

    def pass_until(self, at_s: float) -> None:
        """Let the attempts before this time fail that are not planned."""
        for retry in self._retries.values():
            while retry.at_s < at_s and not retry.is_planned:
                retry.failure_count += 1
                period_s = self._after(retry.gang, retry.at_s, retry.failure_count, retry.at_least_s) - retry.at_s
                # Once backoffs are as long as they get, one period follows the other.
                count = (at_s - retry.at_s) // period_s if retry.failure_count > _FAILURES_COUNTED else 1
                retry.at_s += max(count, 1) * period_s

    def plan(self, state: object) -> Iterator[tuple[Pod, float]]:
        """Yield a member of each gang that may fit in another state than that of its last attempt, and the time."""
        for retry in self._retries.values():
            if retry.state != state and not retry.is_planned:
                retry.is_planned = True
                yield retry.gang.waiting_members[0], retry.at_s

    def _after(self, gang: Gang, now_s: float, failure_count: int, at_least_s: float) -> float:
        """Return the time of the next attempt."""
        if gang.api == UPSTREAM:
            # The first whole second strictly after that in which the backoff ends.
            return math.floor(now_s + self._backoff.duration_s(failure_count, len(gang.waiting_members))) + 1.0
        return math.ceil(now_s + backoff_s(failure_count - 1, at_least_s) - _LOOK_S - _EPSILON_S) + _LOOK_S
