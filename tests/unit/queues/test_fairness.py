"""Nobody starves: whatever some pods do, the others get their attempts. An attempt takes a hundredth of a second."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from podium.framework.contract.cluster_event import NODE_ADD, ActionType, HintScope, QueueingHint, on
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.queues import QueueState
from tests.builders import pod
from tests.unit.queues.builders import QueueBench, Rejecter

ATTEMPT_S = 0.01
FIT = Rejecter("Fit", on(EventResource.NODE, ActionType.ADD))
BACKOFF_S = (1, 2, 4, 8, 10)
# A backoff ends at the first whole second after it.
BACKOFF_MAX_S = 11.0


def attempts_within(seconds: float) -> int:
    """Return the maximum number of attempts of a pod that always fails: at once, and after each of its backoffs."""
    attempts, passed_s = 1, 0.0
    while passed_s <= seconds:
        passed_s += BACKOFF_S[min(attempts - 1, len(BACKOFF_S) - 1)]
        attempts += 1
    return attempts


class Day:
    """A scheduler at work for a while: pods that fail do so each time, others are bound at once."""

    def __init__(self, fails: Callable[[str], Sequence[str] | None], *, event_every_s: float = 0.05) -> None:
        self.bench = QueueBench(FIT)
        self.tried_s: dict[str, list[float]] = defaultdict(list)
        self.arrivals: list[tuple[float, Pod]] = []
        self._fails = fails
        self._event_every_s = event_every_s

    def run(self, seconds: float) -> None:
        bench, ends_s = self.bench, self.bench.clock.now() + seconds
        next_event_s = bench.clock.now()
        self.arrivals.sort(key=lambda entry: -entry[0])
        while (now_s := bench.clock.now()) < ends_s:
            if now_s >= next_event_s:
                bench.queue.move_all(NODE_ADD)
                next_event_s += self._event_every_s
            while self.arrivals and self.arrivals[-1][0] <= now_s:
                bench.add(self.arrivals.pop()[1])
            bench.queue.run_due_timers()
            self._attempt(now_s)
            bench.clock.advance(ATTEMPT_S)

    def _attempt(self, now_s: float) -> None:
        info = self.bench.queue.pop()
        if info is None:
            return
        name = info.pod.metadata.name
        self.tried_s[name].append(now_s)
        rejectors = self._fails(name)
        if rejectors is None:
            self.bench.queue.done(info.pod.uid)
        else:
            self.bench.reject(info, *rejectors)


@pytest.mark.long
def test_high_priority_pods_that_every_event_wakes_leave_time_for_the_others() -> None:
    day = Day(lambda name: ["Fit"] if name.startswith("high") else None)
    day.arrivals = [(1000.0, pod(f"high-{index}", priority=9)) for index in range(300)]
    day.arrivals += [(1000.0 + index / 5, pod(f"low-{index}")) for index in range(200)]
    day.run(50)
    waits = [day.tried_s[f"low-{index}"][0] - (1000.0 + index / 5) for index in range(200)]
    # One round of those of high priority takes three seconds; their first two backoffs end sooner than that.
    assert max(waits) <= 3 * 300 * ATTEMPT_S
    assert max(waits[100:]) <= 300 * ATTEMPT_S


@pytest.mark.long
def test_low_priority_pods_that_fail_are_tried_again_and_again_too() -> None:
    day = Day(lambda name: ["Fit"])
    day.arrivals = [(1000.0, pod(f"high-{index}", priority=9)) for index in range(300)]
    day.arrivals += [(1000.0, pod(f"low-{index}")) for index in range(20)]
    day.run(60)
    for index in range(20):
        times_s = day.tried_s[f"low-{index}"]
        pauses = [later - earlier for earlier, later in pairwise(times_s)]
        assert max(pauses) <= BACKOFF_MAX_S + 320 * ATTEMPT_S


@pytest.mark.parametrize("rejectors", [["Fit"], []], ids=["rejected", "error"])
def test_a_pod_that_fails_goes_behind_its_equals(rejectors: list[str]) -> None:
    bench = QueueBench(FIT)
    bench.add(pod("fails"), pod("waits"))
    bench.clock.advance(1)
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    bench.reject(info, *rejectors)
    bench.queue.activate([info.pod])
    assert bench.popped_names() == ["waits", "fails"]


def test_a_pod_that_runs_into_errors_is_held_to_its_backoff_even_while_nothing_else_waits() -> None:
    day = Day(lambda name: [] if name == "broken" else None)
    day.arrivals = [(1000.0, pod("broken", priority=9))]
    day.arrivals += [(1000.0 + second, pod(f"low-{second}")) for second in range(60)]
    day.run(61)
    assert len(day.tried_s["broken"]) <= attempts_within(61)
    waits = [day.tried_s[f"low-{second}"][0] - (1000.0 + second) for second in range(60)]
    assert max(waits) <= 2 * ATTEMPT_S


def test_a_pod_is_taken_early_from_its_backoff_only_while_no_other_waits_whatever_its_priority() -> None:
    bench = QueueBench(FIT)
    bench.add(high := pod("high", priority=9))
    info = bench.pop()
    bench.queue.move_all(NODE_ADD)
    assert bench.reject(info, "Fit") is QueueState.BACKOFF
    for number in range(5):
        bench.add(pod(f"low-{number}"))
    assert bench.popped_names() == [f"low-{number}" for number in range(5)] + ["high"]
    assert bench.state_of(high) is QueueState.GONE


@pytest.mark.long
def test_pods_taken_early_let_every_newcomer_go_first() -> None:
    day = Day(lambda name: ["Fit"] if name.startswith("high") else None, event_every_s=ATTEMPT_S)
    day.arrivals = [(1000.0, pod(f"high-{index}", priority=9)) for index in range(3)]
    day.arrivals += [(1020.0 + index / 4, pod(f"low-{index}")) for index in range(100)]
    day.run(50)
    # With nothing else to do they are tried without end, but a pod that can go never waits for more than these three.
    assert len(day.tried_s["high-0"]) > 500
    waits = [day.tried_s[f"low-{index}"][0] - (1020.0 + index / 4) for index in range(100)]
    assert max(waits) <= 4 * ATTEMPT_S


def test_thousands_that_an_event_cannot_help_cost_others_nothing() -> None:
    names_asked: list[str] = []

    def hint(pod: Pod, old: object, new: object) -> QueueingHint:
        names_asked.append(pod.metadata.name)
        return QueueingHint.SKIP

    bench = QueueBench(Rejecter("Full", on(EventResource.NODE, ActionType.ADD, hint=hint, scope=HintScope.SPEC)))
    for index in range(2000):
        bench.add_rejected(pod(f"huge-{index}"), "Full")
    for index in range(100):
        bench.queue.move_all(NODE_ADD)
        bench.add(pod(f"small-{index}"))
        assert bench.pop().pod.metadata.name == f"small-{index}"
    assert len(names_asked) == 100
