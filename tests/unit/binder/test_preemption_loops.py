from __future__ import annotations

from itertools import count

import msgspec
import pytest

from podium.binder.events.event import Event
from podium.binder.preemption_loops import LOOP_AT, PreemptionLoops
from podium.daemon.observers import PreemptionMetrics
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.meta import OwnerReference
from podium.telemetry import Metrics
from tests.builders import pod

URGENT = pod("urgent", priority=10)


def owned_pod(name: str, owner: str) -> Pod:
    plain_pod = pod(name)
    references = (OwnerReference(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True),)
    return msgspec.structs.replace(
        plain_pod, metadata=msgspec.structs.replace(plain_pod.metadata, owner_references=references)
    )


class PreemptionLoopsBench:
    """One node; a preemption takes its victims off."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.pods: list[Pod] = []
        self._numbers = count()
        self.told: list[Event] = []
        self.loops = PreemptionLoops(self.clock, lambda _: self.pods, self.told.append, PreemptionMetrics(self.metrics))

    def preempt(self, *victims: Pod, by: Pod = URGENT, name: str = "n1") -> None:
        self.loops.begin(by, name, victims)
        self.pods = [pod for pod in self.pods if pod not in victims]

    def again_and_again(self, times: int, *, by: Pod = URGENT, owner: str = "web") -> None:
        """Each victim is followed by another of its owner."""
        for _ in range(times):
            successor = owned_pod(f"{owner}-{next(self._numbers)}", owner)
            self.pods.append(successor)
            self.preempt(successor, by=by)

    def holds_back(self, preemptor: Pod, name: str = "n1") -> bool:
        return name in self.loops.held_back_from(preemptor)

    @property
    def alarms(self) -> float:
        return self.metrics.value("podium_preemption_loops_total")


@pytest.fixture
def bench() -> PreemptionLoopsBench:
    return PreemptionLoopsBench()


def test_victims_that_come_back_three_times_are_a_loop_and_the_preemptor_is_held_back(
    bench: PreemptionLoopsBench,
) -> None:
    bench.again_and_again(LOOP_AT)
    assert not bench.holds_back(URGENT)
    assert bench.told == []
    bench.again_and_again(1)
    assert bench.holds_back(URGENT)
    assert bench.alarms == 1
    [event] = bench.told
    assert (event.type, event.reason, event.action) == ("Warning", "PreemptionLoop", "Preempting")
    assert event.regarding.name == "urgent"
    assert "have come back to node n1 3 times" in event.note


def test_it_is_kept_from_that_node_alone(bench: PreemptionLoopsBench) -> None:
    bench.again_and_again(LOOP_AT + 1)
    assert set(bench.loops.held_back_from(URGENT)) == {"n1"}


def test_it_is_held_back_for_a_second_and_twice_as_long_each_time_up_to_five_minutes(
    bench: PreemptionLoopsBench,
) -> None:
    bench.again_and_again(LOOP_AT)
    for seconds in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0):
        bench.again_and_again(1)
        bench.clock.advance(seconds - 0.1)
        assert bench.holds_back(URGENT), seconds
        bench.clock.advance(0.1)
        assert not bench.holds_back(URGENT), seconds
    assert bench.alarms == len(bench.told) == 11


def test_a_loop_that_has_been_over_for_long_is_forgotten(bench: PreemptionLoopsBench) -> None:
    bench.again_and_again(LOOP_AT + 1)
    bench.clock.advance(600.0)
    bench.again_and_again(LOOP_AT)
    assert not bench.holds_back(URGENT)


def test_who_asked_while_held_back_is_named_once_when_that_is_over(bench: PreemptionLoopsBench) -> None:
    bench.again_and_again(LOOP_AT + 1)
    assert bench.holds_back(URGENT)
    assert bench.loops.pop_released() == []
    bench.clock.advance(1.0)
    assert bench.loops.pop_released() == [URGENT]
    assert bench.loops.pop_released() == []


def test_victims_that_come_back_beside_preemptors_that_got_their_place_are_no_loop(bench: PreemptionLoopsBench) -> None:
    for number in range(10):
        preemptor = owned_pod(f"db-{number}", "db")
        bench.again_and_again(1, by=preemptor)
        bench.pods.append(preemptor)
    assert bench.told == []


def test_replicas_that_make_room_one_after_the_other_are_no_loop(bench: PreemptionLoopsBench) -> None:
    bench.pods = [owned_pod(f"old-{number}", "batch") for number in range(20)]
    for number, victim in enumerate(tuple(bench.pods)):
        bench.preempt(victim, by=owned_pod(f"new-{number}", "web"))
    assert bench.told == []


def test_successors_of_the_preemptor_are_of_the_same_loop(bench: PreemptionLoopsBench) -> None:
    for number in range(LOOP_AT + 1):
        bench.again_and_again(1, by=owned_pod(f"db-{number}", "db"))
    assert bench.holds_back(owned_pod("db-7", "db"))
    assert not bench.holds_back(owned_pod("web-7", "web"))


def test_a_pod_made_anew_by_hand_is_known_by_its_name(bench: PreemptionLoopsBench) -> None:
    for number in range(LOOP_AT + 1):
        successor = pod("alone", uid=f"uid-{number}")
        bench.pods.append(successor)
        bench.preempt(successor)
    assert bench.holds_back(URGENT)


@pytest.mark.parametrize("owner", [None, "web-{}"], ids=["no owner", "another owner each time"])
def test_successors_count_whatever_their_names_and_owners(bench: PreemptionLoopsBench, owner: str | None) -> None:
    for number in range(LOOP_AT + 1):
        name = f"web-{number}"
        successor = pod(name) if owner is None else owned_pod(name, owner.format(number))
        bench.pods.append(successor)
        bench.preempt(successor)
    assert bench.holds_back(URGENT)


def test_what_comes_back_after_a_long_time_or_to_another_node_is_no_loop(bench: PreemptionLoopsBench) -> None:
    for _ in range(10):
        bench.again_and_again(1)
        bench.clock.advance(600.0)
    for number in range(10):
        bench.preempt(owned_pod(f"web-{number}", "web"), name=f"n{number}")
    assert bench.told == []
