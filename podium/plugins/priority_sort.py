"""PrioritySort: pods of higher priority first; among equal priorities those that have waited longer first.

Runs at: QueueSort.
Verdict: none.
Requeue: none.
Cost: constant; a heap that orders by `sort_key` needs no call per comparison.
Source: kubernetes pkg/scheduler/framework/plugins/queuesort/priority_sort.go, v1.36.2.
"""

from __future__ import annotations

from podium.framework import contract as fwk


class PrioritySort(fwk.QueueSortPlugin):
    """Orders the active queue by priority, then by the time a pod was put into the queue."""

    def sort_key(self, info: fwk.QueuedPodInfo) -> tuple[int, float]:
        """Return the key of the order: `a` goes before `b` exactly if its key is lower."""
        return -info.pod.priority, info.timestamp_s

    def less(self, a: fwk.QueuedPodInfo, b: fwk.QueuedPodInfo) -> bool:
        """Return whether `a` goes before `b`."""
        return self.sort_key(a) < self.sort_key(b)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()
