from __future__ import annotations

from itertools import pairwise

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.plugins.priority_sort import PrioritySort
from tests.builders import pod
from tests.unit.plugins.clusters import RecordingHandle


def test_higher_priority_goes_first_and_the_longer_wait_decides_among_equals() -> None:
    plugin = PrioritySort(None, RecordingHandle())
    in_order = [
        QueuedPodInfo(pod(priority=10), timestamp_s=9.0),
        QueuedPodInfo(pod(priority=1), timestamp_s=1.0),
        QueuedPodInfo(pod(), timestamp_s=2.0),
        QueuedPodInfo(pod(priority=0), timestamp_s=3.0),
        QueuedPodInfo(pod(priority=-1), timestamp_s=0.0),
    ]
    backwards = in_order[::-1]
    assert sorted(backwards, key=plugin.sort_key) == in_order
    for first, second in pairwise(in_order):
        assert plugin.less(first, second)
        assert not plugin.less(second, first)


def test_neither_of_two_equals_goes_first() -> None:
    plugin = PrioritySort(None, RecordingHandle())
    info = QueuedPodInfo(pod(), timestamp_s=1.0)
    assert not plugin.less(info, QueuedPodInfo(pod("other"), timestamp_s=1.0))
    assert plugin.events_to_register() == ()
