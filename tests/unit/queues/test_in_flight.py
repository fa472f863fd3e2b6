from __future__ import annotations

import pytest

from podium.framework.contract.cluster_event import NODE_ADD
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import ManualClock
from podium.queues.hints import Hints
from podium.queues.in_flight import InFlightPods
from tests.builders import pod
from tests.unit.queues.builders import Recorder


class InFlightBench:
    def __init__(self) -> None:
        self.recorder = Recorder()
        self.pods = InFlightPods(self.recorder)
        self.interest = Hints({}, ManualClock(), self.recorder).interest(NODE_ADD)

    def pop(self, *names: str) -> None:
        for name in names:
            self.pods.add(QueuedPodInfo(pod(name, uid=name), 0.0))

    def happen(self, *names: str) -> None:
        for name in names:
            self.pods.record(self.interest, None, name)

    def seen_by(self, uid: str) -> list[str]:
        events = self.pods.events_since_popped(uid)
        assert events is not None
        return [event.new for event in events]


def test_a_pod_sees_what_happened_since_it_was_popped() -> None:
    bench = InFlightBench()
    bench.pop("a")
    bench.happen("1")
    bench.pop("b")
    bench.happen("2", "3")
    assert bench.seen_by("a") == ["1", "2", "3"]
    assert bench.seen_by("b") == ["2", "3"]


def test_events_are_forgotten_once_no_pod_needs_them() -> None:
    bench = InFlightBench()
    bench.pop("a")
    bench.happen("1")
    bench.pop("b")
    bench.happen("2")
    bench.pods.remove("a")
    assert bench.pods.event_count == 1
    assert bench.seen_by("b") == ["2"]
    bench.pods.remove("b")
    assert bench.pods.event_count == 0


def test_the_oldest_pod_keeps_its_events_when_a_younger_one_leaves() -> None:
    bench = InFlightBench()
    bench.pop("a")
    bench.happen("1")
    bench.pop("b")
    bench.happen("2")
    bench.pods.remove("b")
    assert bench.seen_by("a") == ["1", "2"]


def test_a_pod_that_is_popped_again_starts_afresh() -> None:
    bench = InFlightBench()
    bench.pop("a", "b")
    bench.happen("1")
    bench.pods.remove("a")
    bench.pop("a")
    bench.happen("2")
    bench.pods.remove("b")
    assert bench.seen_by("a") == ["2"]


def test_a_pod_that_is_not_in_flight_has_no_events() -> None:
    bench = InFlightBench()
    assert bench.pods.events_since_popped("a") is None
    assert bench.pods.remove("a") is None


def test_pods_and_events_are_counted_in_and_out() -> None:
    bench = InFlightBench()
    bench.pop("a", "b")
    bench.happen("1")
    assert bench.recorder.in_flight_events == {"PodPopped": 2, "NodeAdd": 1}
    bench.pods.remove("a")
    bench.pods.remove("b")
    assert set(bench.recorder.in_flight_events.values()) == {0}


def test_a_pod_cannot_be_in_flight_twice() -> None:
    bench = InFlightBench()
    bench.pop("a")
    with pytest.raises(AssertionError):
        bench.pop("a")
