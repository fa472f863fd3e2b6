"""Computes how long a rejected pod waits before it is retried.

Pure arithmetic. A backoff ends at the first whole second strictly after it has run out, so that pods whose backoffs run
out within the same second are released in the order of their priorities, not in the order in which they failed.

Source: kubernetes pkg/scheduler/backend/queue/backoff_queue.go, v1.36.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from podium.framework.contract.queued_pod import QueuedPodInfo


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """The initial and the maximum backoff; a maximum of 0 disables backoff."""

    initial_s: float = 1.0
    max_s: float = 10.0

    def duration_s(self, failures: int, pod_count: int = 1) -> float:
        """Return the backoff after this number of failed attempts: it doubles each time, up to the maximum.

        The maximum of a group of pods grows with the square root of their number.
        """
        if failures <= 0:
            return 0.0
        max_s = self.max_s * math.sqrt(pod_count)
        # ldexp scales by powers of two without ever overflowing, however often the pod has failed.
        if self.initial_s > math.ldexp(max_s, 1 - failures):
            return max_s
        return math.ldexp(self.initial_s, failures - 1)

    def expiration_s(self, info: QueuedPodInfo) -> float:
        """Return the whole second in which the pod's backoff runs out; 0 if it has no backoff. Cached on the pod."""
        if info.backoff_expiration_s == 0.0:
            failures = info.consecutive_errors_count or info.unschedulable_count
            if failures and self.max_s:
                duration_s = self.duration_s(failures, len(info.member_infos))
                info.backoff_expiration_s = float(math.floor(info.timestamp_s + duration_s))
        return info.backoff_expiration_s

    def is_backing_off(self, info: QueuedPodInfo, now_s: float) -> bool:
        """Return whether the pod is still backing off; the second in which its backoff runs out still counts."""
        expiration_s = self.expiration_s(info)
        return expiration_s != 0.0 and expiration_s >= math.floor(now_s)


DEFAULT_BACKOFF = PodBackoff()
