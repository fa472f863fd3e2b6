from __future__ import annotations

from typing import Any

import pytest

from podium.config import LOOSE_GROUPS, RELEASES
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    QueueingHint,
    on,
)
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.status import Status, unresolvable
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.queues import (
    AlreadyQueued,
    PodBackoff,
    QueueProfile,
    QueueState,
    QueueStatistics,
    QueueTimes,
    SchedulingQueue,
    build_hint_map,
)
from tests.builders import pod
from tests.unit.queues.builders import PROFILE, ByPriority, Gates, QueueBench, Rejecter

FIT = Rejecter("Fit", on(EventResource.NODE, ActionType.ADD))
LABELS = Rejecter("Labels", on(EventResource.POD, ActionType.UPDATE_POD_LABEL))


def own_gates_eliminated(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new.uid == pod.uid else QueueingHint.SKIP


class GatesWithHint(Gates):
    registrations = (
        on(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, hint=own_gates_eliminated),
    )


# ---------------------------------------------------------------- add


def test_a_new_pod_is_active_and_wakes_the_loop() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    assert bench.state_of(web) is QueueState.ACTIVE
    assert bench.wakes == 1
    assert bench.recorder.entered == [("active", "UnscheduledPodAdd")]


def test_higher_priority_goes_first_then_who_waits_longer() -> None:
    bench = QueueBench()
    for name, priority in (("low", 0), ("old", 5), ("new", 5), ("none", None)):
        bench.add(pod(name, priority=priority))
        bench.clock.advance(0.1)
    assert bench.popped_names() == ["old", "new", "low", "none"]


class ByRank(ByPriority):
    """Orders by ranks that become known after the pods."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: dict[str, int] = {}

    def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
        return self.ranks.get(info.pod.metadata.name, 0), info.timestamp_s


def test_pods_are_ordered_anew_by_what_came_after_them() -> None:
    by_rank = ByRank()
    bench = QueueBench(queue_sort=by_rank)
    for name in ("first", "second", "last"):
        bench.add(pod(name))
        bench.clock.advance(0.1)
    by_rank.ranks = {"last": -1}
    bench.queue.reorder()
    assert bench.popped_names() == ["last", "first", "second"]


def test_a_gated_pod_waits_without_waking_the_loop() -> None:
    bench = QueueBench()
    bench.add(web := pod(gates=["a"]))
    assert bench.state_of(web) is QueueState.GATED
    assert bench.wakes == 0
    assert bench.queue.pop() is None
    assert bench.recorder.entered == [("unschedulable", "UnscheduledPodAdd")]
    assert bench.recorder.unschedulable == {"Gates": 1}


def test_time_spent_gated_is_not_time_spent_waiting() -> None:
    bench = QueueBench(GatesWithHint())
    bench.add(gated_pod := pod(gates=["a"]))
    bench.clock.advance(60)
    bench.update(gated_pod, pod())
    info = bench.pop()
    assert (info.timestamp_s, info.initial_attempt_timestamp_s) == (1000, 1060)


def test_a_pod_added_again_replaces_the_one_before() -> None:
    bench = QueueBench()
    bench.add_rejected(pod(uid="old"), "Fit")
    bench.add(new := pod(uid="new"))
    assert bench.recorder.unschedulable == {"Fit": 0}
    assert bench.pop().pod is new
    assert bench.queue.pop() is None


def test_a_new_pod_keeps_the_nomination_in_its_status() -> None:
    bench = QueueBench()
    bench.add(web := pod(nominated="n1"))
    assert bench.queue.nominated_pods_for_node("n1") == (web,)


@pytest.mark.parametrize(("minor", "names"), [("1.37", ["gated"]), ("1.36", [])])
def test_a_gated_pod_is_nominated_since_1_37(minor: str, names: list[str]) -> None:
    bench = QueueBench(release=RELEASES[minor])
    bench.add(pod("gated", nominated="n1", gates=["a"]))
    assert [pod.metadata.name for pod in bench.queue.nominated_pods_for_node("n1")] == names


def test_in_1_36_a_pod_is_nominated_by_its_status_again_when_an_update_activates_it() -> None:
    for minor, node_name in (("1.37", "n2"), ("1.36", None)):
        bench = QueueBench(Rejecter("Own", on(EventResource.TARGET_POD, ActionType.UPDATE)), release=RELEASES[minor])
        bench.add_rejected(web := pod(), "Own")
        bench.queue.nominator.add(web, "n2")
        bench.advance(5)
        bench.update(web, pod())
        assert bench.state_of(web) is QueueState.ACTIVE
        assert bench.queue.nominator.node_of(web.uid) == node_name


# ---------------------------------------------------------------- update


def test_an_active_pod_is_updated_where_it_is() -> None:
    bench = QueueBench()
    bench.add(first := pod("a", priority=1), pod("b", priority=2))
    bench.update(first, pod("a", priority=3))
    assert bench.popped_names() == ["a", "b"]


@pytest.mark.parametrize("plugins", [("Fit",), ()])
def test_a_pod_that_backs_off_is_updated_where_it_is(plugins: tuple[str, ...]) -> None:
    bench = QueueBench(FIT)
    bench.add(web := pod())
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    place = bench.reject(info, *plugins)
    bench.update(web, changed_pod := pod(labels={"a": "b"}))
    assert bench.state_of(web) is place
    bench.advance(3)
    assert bench.pop().pod is changed_pod


def test_an_update_takes_a_rejected_pod_back_only_if_a_rejector_cares() -> None:
    bench = QueueBench(FIT, LABELS)
    bench.add_rejected(cares := pod("a"), "Labels")
    bench.add_rejected(does_not := pod("b"), "Fit")
    bench.advance(5)
    for item in (cares, does_not):
        bench.update(item, pod(item.metadata.name, labels={"a": "b"}))
    assert (bench.state_of(cares), bench.state_of(does_not)) == (QueueState.ACTIVE, QueueState.UNSCHEDULABLE)
    queue_info = bench.queue.get(does_not)
    assert queue_info is not None
    assert queue_info.pod.metadata.labels == {"a": "b"}


def test_an_update_in_which_several_things_changed_counts_once() -> None:
    tolerations = Rejecter("Taints", on(EventResource.POD, ActionType.UPDATE))
    bench = QueueBench(tolerations, LABELS)
    bench.add_rejected(web := pod(), "Taints", "Labels")
    bench.advance(5)
    bench.update(web, pod(labels={"a": "b"}, tolerations=[{"key": "a"}]))
    assert bench.state_of(web) is QueueState.ACTIVE
    assert bench.recorder.entered[-1] == ("active", "TargetPodUpdatePodLabel")


@pytest.mark.parametrize(("minor", "event"), [("1.37", "UnscheduledPodAdd"), ("1.36", "UnschedulablePodUpdate")])
def test_an_update_of_an_unknown_pod_adds_it(minor: str, event: str) -> None:
    bench = QueueBench(release=RELEASES[minor])
    bench.update(pod(), web := pod(nominated="n1"))
    assert bench.state_of(web) is QueueState.ACTIVE
    assert bench.recorder.entered == [("active", event)]
    assert bench.queue.nominated_pods_for_node("n1") == (web,)


@pytest.mark.parametrize(("minor", "attempts"), [("1.37", 0), ("1.36", 1)])
def test_a_pod_that_was_recreated_unseen_is_a_new_one_since_1_37(minor: str, attempts: int) -> None:
    bench = QueueBench(FIT, release=RELEASES[minor])
    bench.add_rejected(old := pod(uid="old"), "Fit")
    bench.advance(5)
    bench.update(old, new := pod(uid="new"))
    info = bench.queue.get(new)
    assert info is not None
    assert (info.pod, info.attempts) == (new, attempts)
    assert bench.state_of(new) is (QueueState.UNSCHEDULABLE if attempts else QueueState.ACTIVE)
    assert bench.recorder.unschedulable["Fit"] == attempts


def test_an_update_of_a_pod_in_flight_is_weighed_when_it_comes_back() -> None:
    bench = QueueBench(LABELS)
    bench.add(web := pod())
    info = bench.pop()
    bench.update(web, pod(labels={"a": "b"}))
    assert bench.state_of(web) is QueueState.IN_FLIGHT
    assert bench.recorder.in_flight_events["TargetPodUpdatePodLabel"] == 1
    assert bench.reject(info, "Labels") is QueueState.BACKOFF
    assert bench.recorder.in_flight_events["TargetPodUpdatePodLabel"] == 0


def test_an_update_moves_the_nomination() -> None:
    bench = QueueBench()
    bench.add(web := pod(nominated="n1"))
    bench.update(web, pod(nominated="n2"))
    assert bench.queue.nominated_pods_for_node("n1") == ()
    assert len(bench.queue.nominated_pods_for_node("n2")) == 1


# ---------------------------------------------------------------- delete


def test_a_deleted_pod_is_gone_wherever_it_waited() -> None:
    bench = QueueBench(FIT)
    backing_off = pod("backing-off")
    bench.add(backing_off)
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.reject(info, "Fit")
    bench.add_rejected(rejected_pod := pod("rejected", priority=9), "Fit")
    bench.add_rejected(failed_pod := pod("failed", priority=9))
    bench.add(active := pod("active"), gated_pod := pod("gated", gates=["a"]))
    everyone = [backing_off, rejected_pod, failed_pod, active, gated_pod]
    assert [bench.state_of(item) for item in everyone] == [
        QueueState.BACKOFF,
        QueueState.UNSCHEDULABLE,
        QueueState.ERROR_BACKOFF,
        QueueState.ACTIVE,
        QueueState.GATED,
    ]
    for item in everyone:
        bench.queue.delete(item)
        assert bench.state_of(item) is QueueState.GONE
    assert bench.queue.statistics() == QueueStatistics(0, 0, 0, 0, 0, 0, 0)
    assert set(bench.recorder.unschedulable.values()) == {0}


def test_a_deleted_pod_loses_its_nomination() -> None:
    bench = QueueBench()
    bench.add(web := pod(nominated="n1"))
    bench.queue.delete(web)
    assert bench.queue.nominated_pods_for_node("n1") == ()


def test_a_pod_that_is_deleted_in_flight_stays_so_until_its_attempt_ends() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    bench.pop()
    bench.queue.delete(web)
    assert bench.state_of(web) is QueueState.IN_FLIGHT
    bench.queue.done(web.uid)
    assert bench.state_of(web) is QueueState.GONE


# ---------------------------------------------------------------- pop and done


def test_a_popped_pod_is_in_flight_and_counts_an_attempt() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    info = bench.pop()
    assert (info.attempts, bench.state_of(web)) == (1, QueueState.IN_FLIGHT)
    assert bench.queue.statistics() == QueueStatistics(0, 0, 0, 0, 0, in_flight=1, in_flight_events=0)


def test_an_empty_queue_has_nothing_to_pop() -> None:
    assert QueueBench().queue.pop() is None


def test_a_pod_is_taken_out_of_its_backoff_when_nothing_else_waits() -> None:
    bench = QueueBench(FIT)
    bench.add(web := pod())
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.reject(info, "Fit")
    bench.add(second_pod := pod("other"))
    assert bench.pop().pod is second_pod
    assert bench.pop().pod is web
    assert bench.recorder.entered[-1] == ("active", "PopFromBackoffQ")


def test_a_pod_that_is_in_flight_already_is_dropped() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    bench.pop()
    bench.add(pod(), pod("other"))
    assert bench.pop().pod.metadata.name == "other"
    assert bench.recorder.astray == [(web.uid, "the same pod is tracked in multiple places in the scheduler")]
    assert bench.state_of(web) is QueueState.IN_FLIGHT


def test_a_popped_pod_does_not_count_as_unschedulable_but_keeps_its_rejectors() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(pod(), "Fit")
    assert bench.recorder.unschedulable == {"Fit": 1}
    bench.advance(5)
    bench.queue.move_all(NODE_ADD)
    assert bench.pop().unschedulable_plugins == {"Fit"}
    assert bench.recorder.unschedulable == {"Fit": 0}


def test_done_of_an_unknown_pod_is_harmless() -> None:
    QueueBench().queue.done("nobody")


def test_the_story_has_every_transition() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(web := pod(), "Fit")
    bench.advance(5)
    bench.queue.move_all(NODE_ADD)
    bench.pop()
    bench.queue.done(web.uid)
    assert [(line.event, line.new_state) for line in info.transitions.entries] == [
        ("UnscheduledPodAdd", "active"),
        ("Pop", "in flight"),
        ("ScheduleAttemptFailure", "unschedulable"),
        ("NodeAdd", "active"),
        ("Pop", "in flight"),
        ("Done", "gone"),
    ]


def test_a_pod_is_added_and_popped_at_one_reading_of_the_clock() -> None:
    """A recorder notes each reading."""
    readings: list[float] = []

    class Counting(ManualClock):
        def monotonic(self) -> float:
            readings.append(super().monotonic())
            return readings[-1]

    queue = SchedulingQueue([QueueProfile(PROFILE, [], {})], ByPriority(), Counting(), {}.get, wake=lambda: None)
    readings.clear()
    queue.add(pod())
    assert len(readings) == 1
    info = queue.pop(monotonic_s=readings[0] + 2.0)
    assert len(readings) == 1
    assert info is not None
    addition, popped = info.transitions.entries
    assert (
        popped.at_s == addition.at_s + 2.0 == info.timestamp_s + 2.0 == (info.initial_attempt_timestamp_s or 0.0) + 2.0
    )


# ---------------------------------------------------------------- coming back


def test_a_rejected_pod_counts_a_rejection_and_forgets_its_errors() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(pod())
    assert (info.consecutive_errors_count, info.unschedulable_count) == (1, 0)
    bench.advance(3)
    bench.reject(bench.pop(), "Fit")
    assert (info.consecutive_errors_count, info.unschedulable_count) == (0, 1)


def test_a_failed_pod_counts_an_error_and_keeps_its_rejections() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(pod(), "Fit")
    bench.queue.activate([info.pod])
    bench.reject(bench.pop())
    assert (info.consecutive_errors_count, info.unschedulable_count) == (1, 1)


def test_a_pod_that_comes_back_is_as_old_as_its_return() -> None:
    bench = QueueBench()
    bench.add(pod())
    info = bench.pop()
    bench.clock.advance(7)
    info.was_flushed_from_unschedulable = True
    bench.reject(info, "Fit")
    assert (info.timestamp_s, info.was_flushed_from_unschedulable) == (1007, False)


def test_a_pod_that_waits_already_is_not_put_back_but_is_done() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    info = bench.pop()
    bench.add(pod())
    with pytest.raises(AlreadyQueued, match=r"^Pod default/web-1 is already present in the active queue$"):
        bench.reject(info, "Fit")
    assert bench.queue.statistics().in_flight == 0
    assert bench.state_of(web) is QueueState.ACTIVE
    assert info.unschedulable_count == 0


def test_a_pod_that_fails_after_it_was_done_backs_off() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    info = bench.pop()
    bench.queue.done(web.uid)
    assert bench.reject(info) is QueueState.ERROR_BACKOFF
    assert bench.recorder.astray == []


def test_a_pod_that_is_rejected_after_it_was_done_backs_off_and_is_reported() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    info = bench.pop()
    bench.queue.done(web.uid)
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    assert [uid for uid, _ in bench.recorder.astray] == [web.uid]


def test_without_backoff_a_failed_pod_is_active_at_once() -> None:
    bench = QueueBench(times=QueueTimes(PodBackoff(1.0, 0.0)))
    bench.add(pod())
    assert bench.reject(bench.pop()) is QueueState.ACTIVE


@pytest.mark.parametrize(
    ("rejectors", "pending", "place"),
    [
        (["Fit"], [], QueueState.BACKOFF),
        (["Labels"], [], QueueState.UNSCHEDULABLE),
        (["Labels"], ["Fit"], QueueState.ACTIVE),
        ([], ["Labels"], QueueState.UNSCHEDULABLE),
    ],
)
def test_events_in_flight_decide_where_a_pod_comes_back_to(
    rejectors: list[str], pending: list[str], place: QueueState
) -> None:
    bench = QueueBench(FIT, LABELS)
    bench.add(pod())
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(info, *rejectors, pending=pending) is place


def test_a_later_event_for_a_pending_plugin_beats_an_earlier_one_for_another() -> None:
    bench = QueueBench(FIT, Rejecter("Claims", on(EventResource.POD, ActionType.DELETE)))
    bench.add(pod())
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.queue.move_all(ASSIGNED_POD_DELETE)
    assert bench.reject(info, "Fit", pending=["Claims"]) is QueueState.ACTIVE


def test_events_before_the_attempt_do_not_count() -> None:
    bench = QueueBench(FIT)
    bench.add(pod("other"), pod())
    bench.pop()
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(bench.pop(), "Fit") is QueueState.UNSCHEDULABLE


# ---------------------------------------------------------------- events


def test_an_event_moves_only_pods_whose_rejectors_care() -> None:
    bench = QueueBench(FIT, LABELS)
    bench.add_rejected(fits := pod("a"), "Fit")
    bench.add_rejected(second_pod := pod("b"), "Labels")
    bench.advance(5)
    bench.queue.move_all(NODE_ADD)
    assert (bench.state_of(fits), bench.state_of(second_pod)) == (QueueState.ACTIVE, QueueState.UNSCHEDULABLE)


def test_an_event_puts_a_pod_into_its_backoff_while_that_lasts() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), "Fit")
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.BACKOFF
    assert bench.recorder.entered[-1] == ("backoff", "NodeAdd")
    bench.advance(1.5)
    assert bench.state_of(web) is QueueState.BACKOFF
    bench.advance(0.5)
    assert bench.state_of(web) is QueueState.ACTIVE
    assert bench.recorder.entered[-1] == ("active", "BackoffComplete")


def test_the_loop_is_woken_for_a_pod_that_backs_off() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(pod(), "Fit")
    wakes = bench.wakes
    bench.queue.move_all(NODE_ADD)
    assert bench.wakes == wakes + 1


def test_an_event_for_a_pending_plugin_skips_the_backoff() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), pending=["Fit"])
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.ACTIVE


def test_pods_that_back_off_are_not_moved_by_events() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod())
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.ERROR_BACKOFF


def test_a_pre_check_limits_which_pods_are_looked_at() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(low := pod("low", priority=1), "Fit")
    bench.add_rejected(high := pod("high", priority=9), "Fit")
    bench.advance(5)
    bench.queue.move_all(NODE_ADD, pre_check=lambda pod: pod.priority <= 1)
    assert (bench.state_of(low), bench.state_of(high)) == (QueueState.ACTIVE, QueueState.UNSCHEDULABLE)


def test_an_event_that_nobody_registered_for_is_not_even_recorded() -> None:
    bench = QueueBench(FIT)
    bench.add(pod())
    bench.pop()
    bench.queue.move_all(ASSIGNED_POD_ADD)
    assert bench.queue.statistics().in_flight_events == 0
    bench.queue.move_all(NODE_ADD)
    assert bench.queue.statistics().in_flight_events == 1


def test_a_gated_pod_ignores_events_that_its_gate_did_not_register_for() -> None:
    bench = QueueBench(GatesWithHint(), FIT)
    bench.add(web := pod(gates=["a"]))
    info = bench.queue.get(web)
    assert info is not None
    info.unschedulable_plugins.add("Fit")
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.GATED
    assert bench.recorder.hints == []


def test_a_gated_pod_is_asked_again_on_an_event_of_its_gate() -> None:
    class AnyPodGates(Gates):
        registrations = (on(EventResource.POD, ActionType.DELETE),)

    bench = QueueBench(AnyPodGates())
    bench.add(web := pod(gates=["a"]))
    bench.queue.move_all(ASSIGNED_POD_DELETE)
    assert bench.state_of(web) is QueueState.GATED
    assert bench.recorder.entered == [("unschedulable", "UnscheduledPodAdd"), ("unschedulable", "AssignedPodDelete")]


# ---------------------------------------------------------------- activate


def test_activation_ignores_the_backoff_wherever_the_pod_waits() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(rejected_pod := pod("rejected"), "Fit")
    bench.add_rejected(failed_pod := pod("failed"))
    bench.queue.activate([rejected_pod, failed_pod])
    assert bench.state_of(rejected_pod) is bench.state_of(failed_pod) is QueueState.ACTIVE
    assert bench.recorder.entered[-2:] == [("active", "ForceActivate")] * 2


def test_activation_does_not_open_a_gate() -> None:
    bench = QueueBench()
    bench.add(web := pod(gates=["a"]))
    bench.queue.activate([web])
    assert bench.state_of(web) is QueueState.GATED


def test_activating_a_pod_in_flight_has_it_tried_again() -> None:
    bench = QueueBench(FIT)
    bench.add(web := pod(), second_pod := pod("other"))
    infos = [bench.pop(), bench.pop()]
    bench.queue.activate([web])
    assert [bench.reject(info, "Fit") for info in infos] == [QueueState.BACKOFF, QueueState.UNSCHEDULABLE]
    assert bench.state_of(second_pod) is QueueState.UNSCHEDULABLE


def test_a_pod_is_activated_at_a_later_time() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), "Fit")
    bench.queue.activate([web], after_s=3.0)
    bench.advance(2.9)
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE
    bench.advance(0.1)
    assert bench.state_of(web) is QueueState.ACTIVE


def test_a_later_activation_is_not_for_a_pod_recreated_under_the_same_name() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod("web", uid="1"), "Fit")
    bench.queue.activate([web], after_s=3.0)
    bench.queue.delete(web)
    bench.add_rejected(recreated := pod("web", uid="2"), "Fit")
    bench.advance(3.0)
    assert bench.state_of(recreated) is QueueState.UNSCHEDULABLE


def test_activating_an_active_or_unknown_pod_changes_nothing() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    entered = list(bench.recorder.entered)
    bench.queue.activate([web, pod("nobody")])
    assert bench.recorder.entered == entered


def test_a_pod_is_activated_at_the_earliest_time_that_was_asked_for_and_once() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), "Fit")
    bench.queue.activate([web], 60.0)
    bench.queue.activate([web], 20.0)
    bench.queue.activate([web], 40.0)
    assert bench.queue.next_timer_s() == 20.0
    bench.advance(19.5)
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE
    bench.advance(0.5)
    assert bench.state_of(web) is QueueState.ACTIVE
    bench.reject(bench.pop(), "Fit")
    bench.advance(25.0)
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE


def test_a_pod_that_is_gone_by_then_is_not_activated() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), "Fit")
    bench.queue.activate([web], 20.0)
    bench.queue.delete(web)
    bench.advance(20.0)
    assert bench.queue.pop() is None


# ---------------------------------------------------------------- timers and closing


def test_nothing_is_due_before_the_leftovers_while_nobody_backs_off() -> None:
    assert QueueBench(start_s=1000.25).queue.next_timer_s() == 30


def test_while_somebody_backs_off_something_is_due_at_every_whole_second() -> None:
    bench = QueueBench(start_s=1000.25)
    bench.add_rejected(pod())
    assert bench.queue.next_timer_s() == 0.75


def test_a_pod_without_an_event_is_tried_again_after_five_minutes() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(web := pod(), "Fit")
    bench.advance(300)
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE
    bench.advance(30)
    assert bench.state_of(web) is QueueState.ACTIVE
    assert info.was_flushed_from_unschedulable
    assert bench.recorder.entered[-1] == ("active", "UnschedulableTimeout")


@pytest.mark.parametrize(("minor", "flushes"), [("1.37", 2), ("1.36", 0)])
def test_a_gated_pod_is_checked_again_every_five_minutes_since_1_37(minor: str, flushes: int) -> None:
    bench = QueueBench(release=RELEASES[minor])
    bench.add(web := pod(gates=["a"]))
    bench.advance(700)
    info = bench.queue.get(web)
    assert info is not None
    assert bench.state_of(web) is QueueState.GATED
    assert bench.recorder.entered[1:] == [("unschedulable", "UnschedulableTimeout")] * flushes


def test_a_pod_gated_by_a_stale_answer_is_active_after_five_minutes() -> None:
    is_open = False

    class Stale(Gates):
        def pre_enqueue(self, pod: Pod) -> Status | None:
            return None if is_open else unresolvable("wait")

    bench = QueueBench(Stale())
    bench.add(web := pod())
    is_open = True
    bench.advance(290)
    assert bench.state_of(web) is QueueState.GATED
    bench.advance(40)
    assert bench.state_of(web) is QueueState.ACTIVE
    assert bench.pop().was_flushed_from_unschedulable


def test_a_flushed_pod_that_is_gated_does_not_count_as_flushed_later() -> None:
    bench = QueueBench(GatesWithHint())
    bench.add(web := pod(gates=["a"]))
    bench.advance(400)
    bench.update(web, pod())
    assert not bench.pop().was_flushed_from_unschedulable


def test_a_closed_queue_hands_out_nothing_and_wakes_who_waits() -> None:
    bench = QueueBench()
    bench.add(pod("a"), pod("b"))
    bench.pop()
    wakes = bench.wakes
    bench.queue.close()
    assert bench.queue.pop() is None
    assert bench.wakes == wakes + 1
    assert bench.queue.statistics().in_flight == 0


def test_pods_that_come_back_after_closing_are_nothing_to_report() -> None:
    bench = QueueBench(FIT)
    bench.add(pod())
    info = bench.pop()
    bench.queue.close()
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    assert bench.recorder.astray == []


# ---------------------------------------------------------------- questions


def test_statistics_count_each_kind_of_place() -> None:
    bench = QueueBench(FIT)
    bench.add(pod("backoff"))
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.reject(info, "Fit")
    bench.add_rejected(pod("error", priority=9))
    bench.add_rejected(pod("rejected", priority=9), "Fit")
    bench.add(pod("gated", gates=["a"]), pod("active"), pod("tried", priority=9))
    bench.pop()
    bench.queue.move_all(NODE_ADD, pre_check=lambda pod: False)
    assert bench.queue.statistics() == QueueStatistics(
        active=1, backoff=1, error_backoff=1, unschedulable=1, gated=1, in_flight=1, in_flight_events=1
    )


def test_nominated_pods_are_those_of_the_queue_or_only_their_names() -> None:
    bench = QueueBench()
    bench.add(
        web := pod("web", nominated="n1"), flying_pod := pod("tried", priority=9, nominated="n1", labels={"a": "b"})
    )
    bench.pop()
    nominated_pods = bench.queue.nominated_pods_for_node("n1")
    assert nominated_pods[0] is web
    assert (nominated_pods[1].uid, nominated_pods[1].key, nominated_pods[1].metadata.labels) == (
        flying_pod.uid,
        flying_pod.key,
        {},
    )


@pytest.mark.parametrize("set_by_s", [-3600, 3600])
def test_a_wall_clock_that_is_set_neither_lengthens_nor_shortens_a_backoff(set_by_s: int) -> None:
    bench = QueueBench()
    bench.add_rejected(web := pod())
    bench.clock.set_wall(bench.clock.now() + set_by_s)
    bench.advance(0.5)
    assert bench.queue.state_of(web) is QueueState.ERROR_BACKOFF
    bench.advance(2)
    assert bench.queue.state_of(web) is QueueState.ACTIVE


@pytest.mark.parametrize("set_by_s", [-3600, 3600])
def test_a_wall_clock_that_is_set_does_not_move_the_flush_of_unschedulable_pods(set_by_s: int) -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(web := pod(), "Fit")
    bench.clock.set_wall(bench.clock.now() + set_by_s)
    bench.advance(290)
    assert bench.queue.state_of(web) is QueueState.UNSCHEDULABLE
    bench.advance(60)
    assert bench.queue.state_of(web) is QueueState.ACTIVE


@pytest.mark.parametrize("set_by_s", [-3600, 3600])
def test_how_long_a_pod_has_waited_does_not_depend_on_the_wall_clock(set_by_s: int) -> None:
    bench = QueueBench()
    bench.add(web := pod())
    bench.clock.advance(3)
    bench.clock.set_wall(bench.clock.now() + set_by_s)
    bench.clock.advance(4)
    info = bench.queue.get(web)
    assert info is not None
    assert bench.queue.seconds_waited(info) == (7, 7)


def test_a_pod_is_schedulable_since_its_gates_have_gone() -> None:
    bench = QueueBench()
    bench.add(gated_pod := pod(gates=["quota"]))
    bench.clock.advance(60)
    bench.update(gated_pod, pod())
    bench.queue.activate([gated_pod])
    bench.clock.advance(2)
    assert bench.queue.seconds_waited(bench.pop()) == (2, 2)


def test_a_rejected_pod_is_schedulable_since_an_event_has_requeued_it() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(pod(), "Fit")
    bench.clock.advance(60)
    bench.queue.move_all(NODE_ADD)
    bench.clock.advance(2)
    assert bench.queue.seconds_waited(bench.pop()) == (62, 2)


def test_backing_off_after_an_event_counts_and_the_attempt_that_it_overtook_does_not() -> None:
    bench = QueueBench(FIT)
    bench.add(pod())
    info = bench.pop()
    bench.clock.advance(3)
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    bench.clock.advance(1)
    assert bench.queue.seconds_waited(bench.pop()) == (4, 1)


def test_an_error_does_not_make_a_pod_schedulable_anew() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(pod())
    bench.advance(3)
    assert bench.queue.seconds_waited(bench.pop()) == (3, 3)
    bench.queue.done(info.pod.uid)
    bench.reject(info)
    bench.advance(5)
    assert bench.queue.seconds_waited(bench.pop()) == (8, 8)


def test_time_that_is_excluded_is_not_counted() -> None:
    bench = QueueBench()
    bench.add(pod())
    info = bench.pop()
    bench.clock.advance(5)
    info.exclude(4)
    assert bench.queue.seconds_waited(info) == (5, 1)


# ---------------------------------------------------------------- groups


def test_a_group_is_popped_with_all_its_pods_wherever_they_wait() -> None:
    bench = QueueBench(FIT, Gates(), groups=LOOSE_GROUPS)
    rejected_pod = bench.add_rejected(pod("rejected", group="gang", priority=1), "Fit").pod
    assert bench.state_of(rejected_pod) is QueueState.ERROR_BACKOFF
    gated_pod, low, high = (
        pod("gated", group="gang", gates=["a"]),
        pod("low", group="gang"),
        pod("high", group="gang", priority=9),
    )
    bench.clock.advance(1)
    bench.add(gated_pod, low, high)
    first = bench.pop()
    infos = bench.queue.pop_with(first, [rejected_pod, gated_pod, low, high, pod("gone", group="gang")])
    assert [info.pod.metadata.name for info in infos] == ["high", "rejected", "low"]
    assert [info.attempts for info in infos] == [1, 2, 1]
    assert bench.state_of(gated_pod) is QueueState.GATED
    assert bench.state_of(low) is QueueState.IN_FLIGHT
    assert bench.queue.statistics().in_flight == 3


def test_pods_of_one_priority_are_tried_in_the_order_in_which_they_became_ready() -> None:
    bench = QueueBench(groups=LOOSE_GROUPS)
    for name in ("a", "b", "c"):
        bench.add(pod(name, group="gang"))
        bench.clock.advance(1)
    first = bench.pop()
    infos = bench.queue.pop_with(first, [pod("c", group="gang"), pod("b", group="gang")])
    assert [info.pod.metadata.name for info in infos] == ["a", "b", "c"]


@pytest.mark.parametrize("has_groups", [True, False])
def test_a_rejected_pod_of_a_group_backs_off_and_waits_for_no_event(has_groups: bool) -> None:
    bench = QueueBench(FIT, groups=LOOSE_GROUPS if has_groups else None)
    bench.add_rejected(member := pod(group="gang"), "Fit")
    assert bench.state_of(member) is (QueueState.ERROR_BACKOFF if has_groups else QueueState.UNSCHEDULABLE)
    assert bench.queue.pop() is None
    bench.add_rejected(alone := pod("alone"), "Fit")
    assert bench.state_of(alone) is QueueState.UNSCHEDULABLE


def test_no_event_is_recorded_for_a_pod_of_a_group_that_is_activated_while_it_is_tried() -> None:
    bench = QueueBench(FIT, groups=LOOSE_GROUPS)
    bench.add(member := pod(group="gang"))
    bench.pop()
    bench.queue.activate([member])
    assert bench.queue.statistics().in_flight_events == 0


# ---------------------------------------------------------------- other profiles


class Open(Gates):
    """Lets every pod pass."""

    def pre_enqueue(self, pod: Pod) -> None:
        return None


def test_other_profiles_retry_what_the_earlier_ones_rejected_or_gated() -> None:
    bench = QueueBench(FIT)
    bench.add(
        rejected_pod := pod("rejected"), under_way := pod("under-way"), gated_pod := pod("gated", gates=("wait",))
    )
    first, second = bench.pop(), bench.pop()
    assert bench.reject(first, "Fit") is QueueState.UNSCHEDULABLE
    bench.queue.reload([QueueProfile(PROFILE, [Open()], build_hint_map([LABELS, Open()]))])
    assert bench.queue.state_of(rejected_pod) is QueueState.BACKOFF
    assert bench.queue.state_of(gated_pod) is QueueState.ACTIVE
    assert bench.reject(second, "Fit") is QueueState.BACKOFF
    assert {first.pod.uid, second.pod.uid} == {rejected_pod.uid, under_way.uid}


def test_other_profiles_have_hints_of_their_own() -> None:
    bench = QueueBench(FIT)
    bench.queue.reload([QueueProfile(PROFILE, [Gates()], build_hint_map([LABELS, Gates()]))])
    bench.add(web := pod())
    bench.reject(bench.pop(), "Fit")
    bench.queue.move_all(NODE_ADD)
    assert bench.queue.state_of(web) is QueueState.UNSCHEDULABLE
