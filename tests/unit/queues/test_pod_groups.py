from __future__ import annotations

from podium.config import LOOSE_GROUPS
from podium.queues import QueuedPodGroups, QueueState
from tests.builders import pod
from tests.unit.queues.builders import QueueBench

A, B = (pod(name, group="gang") for name in "ab")


def bench_of(groups: QueuedPodGroups) -> QueueBench:
    bench = QueueBench(groups=LOOSE_GROUPS)
    groups.use_queue(bench.queue)
    for item in (A, B):
        groups.states.put_waiting(item)
        bench.add(item)
    return bench


def test_the_waiting_pods_of_a_group_are_popped_together() -> None:
    groups = QueuedPodGroups(LOOSE_GROUPS)
    bench = bench_of(groups)
    infos = groups.pop_with(bench.pop(), "default/gang")
    assert {info.key for info in infos} == {A.key, B.key}
    assert bench.queue.pop() is None


def test_a_pod_of_a_group_that_is_not_known_is_alone() -> None:
    groups = QueuedPodGroups(LOOSE_GROUPS)
    bench = bench_of(groups)
    first = bench.pop()
    assert groups.pop_with(first, "default/other") == [first]
    assert groups.state("default/other") is None


def test_pods_are_activated_in_the_queue() -> None:
    groups = QueuedPodGroups(LOOSE_GROUPS)
    groups.activate([A])
    bench = bench_of(groups)
    bench.reject(bench.pop(), "Fit")
    assert bench.state_of(A) is QueueState.ERROR_BACKOFF
    groups.activate([A])
    assert bench.state_of(A) is QueueState.ACTIVE
