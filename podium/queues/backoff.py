"""How long a rejected pod waits before it is tried again.

Pure arithmetic. A pod stops backing off at the first whole second strictly after its backoff has run out, so that pods
are let go in the order of their priorities within one second rather than in that of their failures.

Source: kubernetes pkg/scheduler/backend/queue/backoff_queue.go, v1.36.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from podium.framework.contract.queued_pod import QueuedPodInfo


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """The first wait and the longest; a longest of 0 turns backing off off."""

    initial_s: float = 1.0
    max_s: float = 10.0

    def duration_s(self, failures: int) -> float:
        """The wait after that many failed attempts: doubling, up to the longest."""
        if failures <= 0:
            return 0.0
        # ldexp halves without ever overflowing, however often the pod has failed.
        if self.initial_s > math.ldexp(self.max_s, 1 - failures):
            return self.max_s
        return math.ldexp(self.initial_s, failures - 1)

    def expiration_s(self, info: QueuedPodInfo) -> float:
        """The whole second in which the pod's backoff runs out; 0 where it has none. Remembered on the pod."""
        if info.backoff_expiration_s == 0.0:
            failures = info.consecutive_errors_count or info.unschedulable_count
            if failures and self.max_s:
                info.backoff_expiration_s = float(math.floor(info.timestamp_s + self.duration_s(failures)))
        return info.backoff_expiration_s

    def is_backing_off(self, info: QueuedPodInfo, now_s: float) -> bool:
        """Whether the pod still has to wait; the second in which its backoff runs out counts as waiting."""
        expiration_s = self.expiration_s(info)
        return expiration_s != 0.0 and expiration_s >= math.floor(now_s)


DEFAULT_BACKOFF = PodBackoff()
