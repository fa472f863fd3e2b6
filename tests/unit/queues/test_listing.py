from __future__ import annotations

import pytest

from podium.config import RELEASES
from podium.framework.contract.cluster_event import ActionType, on
from podium.framework.contract.plugin import Plugin
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.queues import ListedPod, NextTry, QueueState
from tests.builders import pod
from tests.unit.queues.builders import Gates, QueueBench, Rejecter

FIT = Rejecter(
    "Fit",
    on(EventResource.NODE, ActionType.ADD, ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT),
    on(EventResource.POD, ActionType.DELETE),
)
CLAIMS = Rejecter("Claims", on(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD, ActionType.UPDATE))


class AnyUpdateGates(Gates):
    name = "Gates"
    events_to_register = Plugin.events_to_register  # type: ignore[assignment]


def everything(bench: QueueBench) -> list[ListedPod]:
    return [bench.queue.listing.describe(info) for info in bench.queue.listing.infos()]


def description(bench: QueueBench, item: Pod) -> ListedPod:
    (entry,) = [candidate for candidate in everything(bench) if candidate.pod is item]
    return entry


def test_an_active_pod_is_tried_now() -> None:
    bench = QueueBench()
    bench.add(web := pod(nominated="n1"))
    bench.clock.advance(2)
    entry = description(bench, web)
    assert (entry.state, entry.attempts, entry.nominated_node_name) == (QueueState.ACTIVE, 0, "n1")
    assert (entry.queued_s, entry.first_tried_s) == (1000, 1000)
    assert entry.next_try == NextTry(1002, {})


def test_a_rejected_pod_waits_for_events_of_all_its_rejectors_or_for_the_flush() -> None:
    bench = QueueBench(FIT, CLAIMS)
    bench.add_rejected(web := pod(), "Fit", pending=["Claims"])
    entry = description(bench, web)
    assert (entry.unschedulable_plugins, entry.pending_plugins) == (("Fit",), ("Claims",))
    events = {
        "Fit": ("Node Add, UpdateNodeLabel, UpdateNodeTaint", "Pod Delete"),
        "Claims": ("PersistentVolumeClaim Add, Update",),
    }
    assert entry.next_try == NextTry(1300, events)
    assert [line.event for line in entry.transitions] == ["UnscheduledPodAdd", "Pop", "ScheduleAttemptFailure"]


@pytest.mark.parametrize(("minor", "at_s"), [("1.37", 1300), ("1.36", None)])
def test_a_gated_pod_waits_for_its_gate_alone(minor: str, at_s: float | None) -> None:
    bench = QueueBench(FIT, AnyUpdateGates(), release=RELEASES[minor])
    bench.add(web := pod(gates=["a"]))
    entry = description(bench, web)
    assert (entry.state, entry.gating_plugin, entry.first_tried_s) == (QueueState.GATED, "Gates", None)
    assert entry.next_try is not None
    assert entry.next_try.at_s == at_s
    assert list(entry.next_try.events) == ["Gates"]
    assert entry.next_try.events["Gates"][:2] == ("Pod All", "Node All")


def test_a_pod_backs_off_until_the_second_after_its_backoff_and_after_a_rejection_perhaps_less() -> None:
    bench = QueueBench(FIT)
    bench.add_rejected(failed_pod := pod("failed"))
    bench.add_rejected(rejected_pod := pod("rejected"), "Fit")
    bench.queue.activate([rejected_pod])
    info = bench.pop()
    bench.queue.move_all(FIT.events_to_register()[1].event)
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    assert description(bench, failed_pod).next_try == NextTry(1002, {})
    assert description(bench, rejected_pod).next_try == NextTry(1003, {}, may_be_sooner=True)
    bench.clock.advance(1)
    bench.queue.run_due_timers()
    assert bench.state_of(failed_pod) is QueueState.ERROR_BACKOFF
    bench.clock.advance(1)
    bench.queue.run_due_timers()
    assert bench.state_of(failed_pod) is QueueState.ACTIVE


def test_a_pod_that_is_being_tried_has_no_next_try() -> None:
    bench = QueueBench()
    bench.add(web := pod())
    bench.pop()
    assert (description(bench, web).state, description(bench, web).next_try) == (QueueState.IN_FLIGHT, None)


def test_a_pod_that_was_made_anew_during_its_attempt_is_listed_twice() -> None:
    bench = QueueBench()
    bench.add(pod(uid="old"))
    bench.pop()
    bench.add(pod(uid="new"))
    assert [(entry.pod.uid, entry.state) for entry in everything(bench)] == [
        ("new", QueueState.ACTIVE),
        ("old", QueueState.IN_FLIGHT),
    ]


def test_a_pod_that_has_left_since_is_described_as_gone() -> None:
    bench = QueueBench()
    bench.add(web := pod(), second_pod := pod("other"))
    (first, second) = bench.queue.listing.infos()
    bench.queue.delete(web)
    bench.pop()
    bench.queue.done(second_pod.uid)
    assert [bench.queue.listing.describe(info).state for info in (first, second)] == [QueueState.GONE, QueueState.GONE]
    assert bench.queue.listing.describe(first).next_try is None


def test_times_are_shown_by_the_wall_clock_as_it_is_set_now() -> None:
    bench = QueueBench()
    bench.add_rejected(web := pod())
    bench.clock.set_wall(bench.clock.now() - 3600)
    entry = description(bench, web)
    assert (entry.queued_s, entry.first_tried_s) == (-2600, -2600)
    assert entry.next_try == NextTry(-2598, {})
    assert {line.at_s for line in entry.transitions} == {-2600}
