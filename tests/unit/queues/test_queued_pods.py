from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.lib.clock import ManualClock
from podium.lib.state_table import InvalidTransition
from podium.queues import PodBackoff, QueueEvent, QueueObserver, QueueState
from podium.queues.queued_pods import QueuedPods
from tests.builders import pod
from tests.unit.queues.builders import ByPriority, WithoutArgs


class ByAge(WithoutArgs, QueueSortPlugin):
    """Only `less`; it looks at something that the queue itself changes."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return a.timestamp_s < b.timestamp_s


class LowestFirst(ByPriority):
    """Inherits a sort key that its own `less` does not agree with."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return a.pod.priority < b.pod.priority


def queued_pods(queue_sort: QueueSortPlugin) -> QueuedPods:
    return QueuedPods(queue_sort, PodBackoff(), ManualClock(), {}, QueueObserver())


def info(name: str, *, priority: int = 0, at_s: float = 0.0, failures: int = 0, errors: int = 0) -> QueuedPodInfo:
    return QueuedPodInfo(
        pod(name, priority=priority),
        at_s,
        unschedulable_count=failures,
        consecutive_errors_count=errors,
        unschedulable_plugins={"Fit"} if failures else set(),
    )


def pop_names(pods: QueuedPods) -> list[str]:
    names = []
    while (first := pods.active.peek()) is not None:
        pods.move(first, QueueEvent.POP, "Pop")
        names.append(first.pod.metadata.name)
    return names


@pytest.mark.parametrize(
    ("queue_sort", "order"),
    [(ByPriority(), ["c", "b", "a"]), (ByAge(), ["b", "c", "a"]), (LowestFirst(), ["a", "b", "c"])],
)
def test_the_queue_sort_plugin_orders_the_active_queue(queue_sort: QueueSortPlugin, order: list[str]) -> None:
    pods = queued_pods(queue_sort)
    for entry in (info("a", at_s=3), info("b", priority=5, at_s=1), info("c", priority=9, at_s=2)):
        pods.move(entry, QueueEvent.ENQUEUE, "Add")
    assert pop_names(pods) == order


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=60))
def test_the_order_survives_pods_that_leave_change_and_return(steps: list[tuple[bool, int]]) -> None:
    pods = queued_pods(ByAge())
    ages: dict[str, float] = {}
    for number, (is_new, at_s) in enumerate(steps):
        pod_info = info(str(number), at_s=at_s)
        if not is_new and (first := pods.active.peek()) is not None:
            assert first.timestamp_s == min(ages.values())
            pods.move(first, QueueEvent.POP, "Pop")
            first.timestamp_s = at_s
            pod_info = first
        pods.move(pod_info, QueueEvent.ENQUEUE, "Add")
        ages[pod_info.key] = pod_info.timestamp_s
    assert [ages[f"default/{name}"] for name in pop_names(pods)] == sorted(ages.values())


@pytest.mark.parametrize("queue_sort", [ByPriority(), ByAge()])
def test_backoffs_are_completed_by_second_then_in_the_order_of_the_active_queue(queue_sort: QueueSortPlugin) -> None:
    clock = ManualClock(1000.0)
    pods = QueuedPods(queue_sort, PodBackoff(), clock, {}, QueueObserver())
    waiting = [
        info("next-second", priority=9, at_s=1001.0, failures=1),
        info("low", at_s=1000.9, failures=1),
        info("high", priority=5, at_s=1000.1, failures=1),
    ]
    for entry in waiting:
        pods.move(entry, QueueEvent.BACK_OFF, "Rejected")
    pods.move(info("failed", priority=9, at_s=1000.0, errors=1), QueueEvent.BACK_OFF_AFTER_ERROR, "Failed")
    clock.advance(2.0)
    assert _drain_backoff(pods) == ["high", "low", "failed"]
    clock.advance(1.0)
    assert _drain_backoff(pods) == ["next-second"]


def _drain_backoff(pods: QueuedPods) -> list[str]:
    names = []
    while (pod_info := pods.backoff_completed()) is not None:
        pods.move(pod_info, QueueEvent.ENQUEUE, "BackoffComplete")
        names.append(pod_info.pod.metadata.name)
    return names


def test_every_move_is_recorded_in_the_pods_story() -> None:
    pods = queued_pods(ByPriority())
    web = info("web")
    pods.move(web, QueueEvent.ENQUEUE, "Add")
    pods.move(web, QueueEvent.POP, "Pop")
    assert [(line.event, line.old_state, line.new_state) for line in web.transitions.entries] == [
        ("Add", "gone", "active"),
        ("Pop", "active", "in flight"),
    ]


def test_a_move_that_cannot_be_is_refused_with_the_pods_story() -> None:
    pods = queued_pods(ByPriority())
    web = info("web")
    pods.move(web, QueueEvent.ENQUEUE, "UnscheduledPodAdd")
    with pytest.raises(InvalidTransition, match=r"(?s)MARK_UNSCHEDULABLE in state ACTIVE.*default/web.*PodAdd"):
        pods.move(web, QueueEvent.MARK_UNSCHEDULABLE, "?")
    assert pods.state_of(web.key) is QueueState.ACTIVE


def test_each_pod_is_found_where_it_was_moved_to() -> None:
    pods = queued_pods(ByPriority())
    web = info("web", failures=1)
    pods.move(web, QueueEvent.MARK_UNSCHEDULABLE, "Rejected", coming_from=QueueState.IN_FLIGHT)
    assert (pods.state_of(web.key), pods.get(web.key), len(pods)) == (QueueState.UNSCHEDULABLE, web, 1)
    pods.move(web, QueueEvent.BACK_OFF, "NodeAdd")
    assert (pods.state_of(web.key), pods.get(web.key), len(pods)) == (QueueState.BACKOFF, web, 1)
    pods.move(web, QueueEvent.DELETE, "Delete")
    assert (pods.state_of(web.key), pods.get(web.key), len(pods)) == (QueueState.GONE, None, 0)
