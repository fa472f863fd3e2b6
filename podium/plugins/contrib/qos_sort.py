"""QOSSort: pods of higher priority first; among equal priorities by QoS class, then those that have waited longer.

Runs at: QueueSort.
Verdict: none.
Requeue: none.
Cost: constant; a heap that orders by `sort_key` needs no call per comparison.
Source: sigs.k8s.io/scheduler-plugins pkg/qos/queue_sort.go (for Kubernetes 1.35).
Differs: a pod with a quantity that cannot be parsed goes last within its priority; upstream's client drops such pods.
"""

from __future__ import annotations

from typing import Final

from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.plugins.contrib.calculations import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class

_RANKS: Final = {GUARANTEED: 0, BURSTABLE: 1, BEST_EFFORT: 2}


class QOSSort(fwk.QueueSortPlugin):
    """Orders the active queue by priority, QoS class, and the time a pod was put into the queue."""

    def sort_key(self, info: fwk.QueuedPodInfo) -> tuple[int, int, float]:
        """Return the key of the order: `a` goes before `b` exactly if its key is lower."""
        return -info.pod.priority, _rank(info.pod), info.timestamp_s

    def less(self, a: fwk.QueuedPodInfo, b: fwk.QueuedPodInfo) -> bool:
        """Return whether `a` goes before `b`."""
        return self.sort_key(a) < self.sort_key(b)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()


def _rank(pod: Pod) -> int:
    try:
        return _RANKS.get(qos_class(pod), len(_RANKS))
    except FieldError:
        return len(_RANKS)
