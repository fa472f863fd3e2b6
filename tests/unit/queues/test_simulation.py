"""The queue against the plainest model of its rules, step by step, in virtual time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podium.framework.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventRegistration,
    EventResource,
    QueueingHint,
    on,
)
from podium.framework.interface import PreEnqueuePlugin
from podium.framework.queued_pod import QueuedPodInfo
from podium.framework.status import Status, unresolvable
from podium.kube.objects import Pod
from podium.queues import Place
from tests.unit.queues.builders import Bench, Gates, Rejecter, pod
from tests.unit.queues.model import Model, ModelPod

PODS = range(8)
EVENTS = {
    "NodeAdd": NODE_ADD,
    "NodeLabel": ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL),
    "PodDelete": ASSIGNED_POD_DELETE,
}
CHOICE = st.integers(0, len(PODS) - 1)
MOSTLY_NOT = st.sampled_from([False, False, False, True])
REJECTORS = st.sets(st.sampled_from(["Fit", "Odd", "Room"]), max_size=2)


def suits(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if index_of(pod) % 2 == new else QueueingHint.SKIP


def is_own(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new.uid == pod.uid else QueueingHint.SKIP


def index_of(pod: Pod) -> int:
    return int(pod.metadata.name)


class SchedulingGates(Gates):
    name = "Gates"
    registrations = (on(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, hint=is_own),)


class Preempting(PreEnqueuePlugin):
    """Holds back the pods in `pods`; its hint never lets one go."""

    def __init__(self, pods: set[int]) -> None:
        self.pods = pods

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("preempting") if index_of(pod) in self.pods else None

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (on(EventResource.POD, ActionType.DELETE, hint=lambda pod, old, new: QueueingHint.SKIP),)


class Simulation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model(1000.0)
        self.bench = Bench(
            Rejecter("Fit", on(EventResource.NODE, ActionType.ADD)),
            Rejecter("Odd", on(EventResource.NODE, ActionType.UPDATE_NODE_LABEL, hint=suits)),
            Rejecter("Room", on(EventResource.POD, ActionType.DELETE)),
            Preempting(self.model.preempting),
            SchedulingGates(),
        )
        self.objects: dict[int, Pod] = {}
        self.in_flight: dict[int, QueuedPodInfo] = {}
        self.poppable: set[int] = set()
        self.wakes = 0

    def known(self, choice: int) -> ModelPod:
        pods = list(self.model.pods.values())
        return pods[choice % len(pods)]

    def flying(self, choice: int) -> ModelPod:
        pods = self.model.at(Place.IN_FLIGHT)
        return pods[choice % len(pods)]

    # ------------------------------------------------------------ pods

    @precondition(lambda self: len(self.model.pods) < len(PODS))
    @rule(priorities=st.lists(st.integers(0, 2), min_size=1, max_size=3), has_gates=MOSTLY_NOT)
    def add(self, priorities: list[int], has_gates: bool) -> None:
        free = (index for index in PODS if index not in self.model.pods)
        for index, priority in zip(free, priorities, strict=False):
            self.objects[index] = pod(str(index), priority=priority, gates=["a"] if has_gates else [])
            self.bench.add(self.objects[index])
            self.model.add(index, priority, has_gates)

    @precondition(lambda self: self.model.pods)
    @rule(choice=CHOICE)
    def drop_gates(self, choice: int) -> None:
        known = self.known(choice)
        old = self.objects[known.index]
        new = self.objects[known.index] = pod(str(known.index), priority=known.priority)
        self.bench.update(old, new)
        self.model.drop_gates(known)

    @precondition(lambda self: len(self.model.pods) - len(self.in_flight) > 3)
    @rule(choice=CHOICE)
    def delete(self, choice: int) -> None:
        waiting = [each for each in self.model.pods.values() if each.place is not Place.IN_FLIGHT]
        gone = waiting[choice % len(waiting)]
        self.bench.queue.delete(self.objects[gone.index])
        self.forget(gone)

    def forget(self, gone: ModelPod) -> None:
        del self.model.pods[gone.index], self.objects[gone.index]
        self.model.preempting.discard(gone.index)

    # ------------------------------------------------------------ attempts

    @precondition(lambda self: self.model.choices())
    @rule(times=st.integers(1, 3))
    def pop(self, times: int) -> None:
        for _ in range(times):
            info = self.bench.queue.pop()
            choices = {each.index: each for each in self.model.choices()}
            if info is None:
                assert not choices
                return
            index = index_of(info.pod)
            assert index in choices, info.story
            self.in_flight[index] = info
            self.model.pop(choices[index])

    @precondition(lambda self: self.in_flight)
    @rule(choice=CHOICE, rejectors=REJECTORS, pending=REJECTORS, starts_preemption=MOSTLY_NOT, is_late=MOSTLY_NOT)
    def fail(self, choice: int, rejectors: set[str], pending: set[str], starts_preemption: bool, is_late: bool) -> None:
        failed = self.flying(choice)
        info = self.in_flight.pop(failed.index)
        info.pod = self.objects[failed.index]
        if starts_preemption:
            self.model.preempting.add(failed.index)
        if is_late:
            self.bench.queue.done(info.pod.uid)
        self.bench.reject(info, *rejectors, pending=sorted(pending))
        self.model.fail(failed, rejectors, pending, in_flight=not is_late)

    @precondition(lambda self: self.in_flight)
    @rule(choice=CHOICE)
    def bind(self, choice: int) -> None:
        bound = self.flying(choice)
        self.bench.queue.done(self.in_flight.pop(bound.index).pod.uid)
        self.bench.queue.move_all(ASSIGNED_POD_ADD)
        self.forget(bound)

    # ------------------------------------------------------------ events

    @rule(event=st.sampled_from(["NodeAdd", "NodeLabel", "PodDelete"]), parity=st.integers(0, 1))
    def happen(self, event: str, parity: int) -> None:
        self.bench.queue.move_all(EVENTS[event], None, parity if event == "NodeLabel" else None)
        self.model.happen(event, parity)

    @precondition(lambda self: self.model.pods)
    @rule(choice=CHOICE, ends_preemption=st.booleans())
    def activate(self, choice: int, ends_preemption: bool) -> None:
        activated = self.known(choice)
        if ends_preemption:
            self.model.preempting.discard(activated.index)
        self.bench.queue.activate([self.objects[activated.index]])
        self.model.activate(activated)

    @precondition(lambda self: self.model.preempting)
    @rule(choice=CHOICE)
    def end_preemption(self, choice: int) -> None:
        ended = sorted(self.model.preempting)
        self.model.preempting.discard(ended[choice % len(ended)])
        self.bench.queue.move_all(ASSIGNED_POD_DELETE)
        self.model.happen("PodDelete")

    @rule(quarters=st.one_of(st.integers(1, 12), st.sampled_from([40, 40, 480, 1400])))
    def advance(self, quarters: int) -> None:
        self.bench.advance(quarters / 4)
        self.model.advance(quarters / 4)

    # ------------------------------------------------------------ checks

    @invariant()
    def every_pod_is_where_the_rules_put_it(self) -> None:
        for index, known in self.model.pods.items():
            assert self.bench.place(self.objects[index]) is known.place, self.bench.queue.get(self.objects[index])

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        counts = Counter(each.place for each in self.model.pods.values())
        statistics = self.bench.queue.statistics()
        assert {
            Place.ACTIVE: statistics.active,
            Place.BACKOFF: statistics.backoff,
            Place.ERROR_BACKOFF: statistics.error_backoff,
            Place.UNSCHEDULABLE: statistics.unschedulable,
            Place.GATED: statistics.gated,
            Place.IN_FLIGHT: statistics.in_flight,
        } == {place: counts[place] for place in Place if place is not Place.GONE}

    @invariant()
    def the_counters_agree(self) -> None:
        waiting = (each for each in self.model.pods.values() if each.place is not Place.IN_FLIGHT)
        expected = Counter(name for each in waiting for name in each.rejectors | each.pending)
        assert +self.bench.recorder.unschedulable == expected
        flying = self.model.at(Place.IN_FLIGHT)
        recorded = +self.bench.recorder.in_flight_events
        assert recorded.pop("PodPopped", 0) == len(flying)
        assert recorded.total() == self.bench.queue.statistics().in_flight_events
        assert recorded.total() == max((len(each.seen) for each in flying), default=0)

    @invariant()
    def the_loop_is_woken_for_every_pod_that_can_be_popped(self) -> None:
        poppable = {each.index for each in self.model.at(Place.ACTIVE, Place.BACKOFF)}
        if poppable - self.poppable:
            assert self.bench.wakes > self.wakes
        self.poppable, self.wakes = poppable, self.bench.wakes


TestSimulation = Simulation.TestCase
TestSimulation.settings = settings(
    max_examples=70,
    stateful_step_count=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
