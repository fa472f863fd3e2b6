"""Stories from a cluster, from start to end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    EventRegistration,
    QueueingHint,
    on,
)
from podium.framework.contract.plugin import PreEnqueuePlugin
from podium.framework.contract.status import Status, unresolvable
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.queues import QueueState
from tests.builders import pod
from tests.unit.queues.builders import Gates, QueueBench, Rejecter, WithoutArgs


def freed_something(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if old.node_name or old.status.nominated_node_name else QueueingHint.SKIP


def own(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new.uid == pod.uid else QueueingHint.SKIP


class SchedulingGates(Gates):
    registrations = (on(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, hint=own),)


FIT = Rejecter(
    "NodeResourcesFit",
    on(EventResource.NODE, ActionType.ADD),
    on(EventResource.POD, ActionType.DELETE, hint=freed_something),
)


def cluster() -> QueueBench:
    return QueueBench(FIT, SchedulingGates())


def test_a_bigger_node_brings_back_a_pod_that_did_not_fit() -> None:
    bench = cluster()
    bench.add_rejected(web := pod(), "NodeResourcesFit")
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.BACKOFF
    bench.advance(2)
    assert bench.state_of(web) is QueueState.ACTIVE


def test_a_bigger_node_brings_a_pod_back_at_once_when_its_backoff_is_over() -> None:
    bench = cluster()
    bench.add_rejected(web := pod(), "NodeResourcesFit")
    bench.advance(60)
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.ACTIVE


def test_the_end_of_a_pod_that_held_nothing_brings_nobody_back() -> None:
    bench = cluster()
    bench.add_rejected(web := pod(), "NodeResourcesFit")
    bench.queue.move_all(ASSIGNED_POD_DELETE, pod("other"))
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE
    bench.queue.move_all(ASSIGNED_POD_DELETE, pod("other", node="n1"))
    assert bench.state_of(web) is QueueState.BACKOFF


def test_a_pod_that_loses_one_of_two_gates_stays_gated() -> None:
    bench = cluster()
    bench.add(pod_with_gates := pod(gates=["a", "b"]))
    bench.update(pod_with_gates, pod(gates=["b"]))
    assert bench.state_of(pod_with_gates) is QueueState.GATED
    assert bench.recorder.hints == []


def test_a_pod_that_loses_its_last_gate_is_active_without_backoff() -> None:
    bench = cluster()
    bench.add(last := pod(gates=["b"]))
    bench.update(last, free := pod())
    assert bench.state_of(free) is QueueState.ACTIVE
    assert bench.recorder.hints == [("SchedulingGates", "TargetPodUpdatePodSchedulingGatesEliminated", "Queue")]
    assert bench.recorder.entered[-1] == ("active", "TargetPodUpdatePodSchedulingGatesEliminated")
    assert bench.pop().pod is free
    assert bench.recorder.unschedulable == {"SchedulingGates": 0}


def test_errors_wait_longer_and_longer_and_are_never_tried_early() -> None:
    bench = cluster()
    bench.add(web := pod())
    waits_s = []
    for _ in range(6):
        info = bench.pop()
        assert bench.reject(info) is QueueState.ERROR_BACKOFF
        failed_at_s = bench.clock.now()
        while bench.queue.state_of(web) is QueueState.ERROR_BACKOFF:
            assert bench.queue.pop() is None
            bench.advance(bench.queue.next_timer_s())
        waits_s.append(bench.clock.now() - failed_at_s)
    assert waits_s == [2, 3, 5, 9, 11, 11]


def test_without_nodes_a_pod_is_retried_for_ever() -> None:
    bench = cluster()
    bench.add_rejected(web := pod())
    for _ in range(20):
        assert bench.state_of(web) is QueueState.ERROR_BACKOFF
        bench.advance(12)
        bench.reject(bench.pop())


def test_an_event_during_the_attempt_is_not_lost() -> None:
    bench = cluster()
    bench.add(pod())
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(info, "NodeResourcesFit") is QueueState.BACKOFF


def test_a_more_important_pod_overtakes_those_that_wait() -> None:
    bench = cluster()
    bench.add(pod("low"))
    bench.clock.advance(10)
    bench.add(pod("high", priority=100))
    assert bench.popped_names() == ["high", "low"]


def test_a_preemptor_is_gated_until_its_victims_are_gone() -> None:
    class Preemption(WithoutArgs, PreEnqueuePlugin):
        name = "DefaultPreemption"
        is_running = False

        def pre_enqueue(self, pod: Pod) -> Status | None:
            return unresolvable("waiting for the preemption") if self.is_running else None

        def events_to_register(self) -> Sequence[EventRegistration]:
            return (on(EventResource.POD, ActionType.DELETE, hint=lambda pod, old, new: QueueingHint.SKIP),)

    preemption = Preemption()
    bench = QueueBench(FIT, preemption)
    info = bench.add_rejected(web := pod(), "NodeResourcesFit")
    assert bench.state_of(web) is QueueState.UNSCHEDULABLE
    preemption.is_running = True
    bench.queue.move_all(NODE_ADD)
    assert (bench.state_of(web), info.gating_plugin) == (QueueState.GATED, "DefaultPreemption")
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.GATED
    preemption.is_running = False
    bench.queue.move_all(NODE_ADD)
    assert bench.state_of(web) is QueueState.GATED, "its gate did not ask for new nodes"
    bench.queue.move_all(ASSIGNED_POD_DELETE, pod("victim", node="n1"))
    assert bench.state_of(web) is QueueState.BACKOFF
    assert info.unschedulable_plugins == {"NodeResourcesFit", "DefaultPreemption"}
