"""QOSSort: priority first, then QoS class, then time."""

from __future__ import annotations

import itertools

from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.plugins.contrib.qos_sort import QOSSort
from podium.testing import RecordingHandle, check_contract
from tests.builders import pod, snapshot_of

AMOUNTS = {"cpu": "1", "memory": "1Gi"}
GUARANTEED = {"containers": [{"name": "c", "resources": {"requests": AMOUNTS, "limits": AMOUNTS}}]}
BURSTABLE = {"containers": [{"name": "c", "resources": {"requests": AMOUNTS}}]}
UNREADABLE = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "a lot"}}}]}


def order(*infos: QueuedPodInfo) -> list[str]:
    plugin = QOSSort(None, RecordingHandle(snapshot_of()))
    by_key = sorted(infos, key=plugin.sort_key)
    assert all(not plugin.less(b, a) for a, b in itertools.pairwise(by_key))
    assert plugin.events_to_register() == ()
    return [info.pod.metadata.name for info in by_key]


def test_it_keeps_the_contract() -> None:
    check_contract(QOSSort)


def test_priority_counts_more_than_class_and_class_more_than_time() -> None:
    assert order(
        QueuedPodInfo(pod("best-effort"), 1.0),
        QueuedPodInfo(pod("unreadable", spec=UNREADABLE), 0.0),
        QueuedPodInfo(pod("burstable", spec=BURSTABLE), 2.0),
        QueuedPodInfo(pod("guaranteed", spec=GUARANTEED), 3.0),
        QueuedPodInfo(pod("high", priority=5), 4.0),
    ) == ["high", "guaranteed", "burstable", "best-effort", "unreadable"]


def test_within_a_class_the_earlier_pod_goes_first() -> None:
    assert order(QueuedPodInfo(pod("late"), 2.0), QueuedPodInfo(pod("early"), 1.0)) == ["early", "late"]


def test_a_class_in_the_status_counts_before_the_resources() -> None:
    first = pod("first", status={"qosClass": "Guaranteed"})
    assert order(QueuedPodInfo(pod("second", spec=BURSTABLE), 1.0), QueuedPodInfo(first, 2.0)) == ["first", "second"]
