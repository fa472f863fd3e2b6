from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podium.framework.contract.plugin import QueueSortPlugin
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.objects.core import Pod
from podium.queues import QueueState
from tests.builders import pod
from tests.unit.daemon.hostile_plugins import EXCEPTIONS, ODD_VALUES
from tests.unit.queues.builders import ByPriority, QueueBench, WithoutArgs

WAYS = {name: way for name, way in (EXCEPTIONS | ODD_VALUES).items() if "Mute" not in name}


class ByRank(WithoutArgs, QueueSortPlugin):
    """Fails for pods without a rank, as somebody's plugin may for want of a label."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        return rank(a) < rank(b)


class ByRankKey(ByRank):
    def sort_key(self, info: QueuedPodInfo) -> Any:
        return rank(info)


class ByRankOrNothing(ByRank):
    """Has a key for every pod, but not keys that can be compared."""

    def sort_key(self, info: QueuedPodInfo) -> Any:
        return rank(info) if "rank" in info.pod.metadata.labels else None


class WithoutRivals(WithoutArgs, QueueSortPlugin):
    """Fails where two pods of one team meet."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        if a.pod is not b.pod and a.pod.metadata.labels == b.pod.metadata.labels:
            raise LookupError("rivals")
        return a.pod.metadata.labels["team"] < b.pod.metadata.labels["team"]


def rank(info: QueuedPodInfo) -> int:
    return int(info.pod.metadata.labels["rank"])


def ranked_pod(name: str, number: int) -> Pod:
    return pod(name, labels={"rank": str(number)})


@pytest.mark.parametrize("queue_sort", [ByRank(), ByRankKey(), ByRankOrNothing()])
def test_pods_that_the_plugin_cannot_order_come_last_by_priority_and_age(queue_sort: QueueSortPlugin) -> None:
    bench = QueueBench(queue_sort=queue_sort)
    for item in (
        ranked_pod("third", 3),
        pod("low"),
        ranked_pod("first", 1),
        pod("high", priority=9),
        pod("young"),
        ranked_pod("second", 2),
    ):
        bench.add(item)
        bench.clock.advance(1)
    assert bench.popped_names() == ["first", "second", "third", "high", "low", "young"]
    assert {plugin for plugin, point, _ in bench.recorder.failures if point == "QueueSort"} == {queue_sort.name}


def test_a_plugin_that_fails_for_the_first_pod_orders_the_others() -> None:
    bench = QueueBench(queue_sort=ByRankKey())
    bench.add(pod("none"), ranked_pod("b", 2), ranked_pod("a", 1))
    assert bench.popped_names() == ["a", "b", "none"]


def test_two_pods_that_the_plugin_cannot_compare_are_ordered_by_priority() -> None:
    bench = QueueBench(queue_sort=WithoutRivals())
    for name, team, priority in (("low", "red", 1), ("high", "red", 5), ("blue", "blue", 0), ("mid", "red", 3)):
        bench.add(pod(name, labels={"team": team}, priority=priority))
    assert bench.popped_names() == ["blue", "high", "mid", "low"]
    assert ("WithoutRivals", "QueueSort", "rivals") in bench.recorder.failures


def test_no_pod_is_lost_to_a_plugin_that_always_fails() -> None:
    class Broken(ByPriority):
        def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
            raise LookupError("no such thing")

    bench = QueueBench(queue_sort=Broken())
    bench.add(*(pods := [pod(f"web-{index}", priority=index % 3) for index in range(9)]))
    bench.reject(bench.pop(), "Fit")
    bench.reject(bench.pop())
    bench.update(pods[0], pod("web-0", priority=7))
    bench.queue.activate(pods)
    assert {bench.state_of(pod) for pod in pods} == {QueueState.ACTIVE}
    assert bench.popped_names()[0] == "web-0"
    assert bench.queue.pop() is None


@pytest.mark.parametrize("method", ["less", "sort_key"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_plugin_that_misbehaves_in_any_way_loses_no_pod(method: str, way: Callable[[], Any]) -> None:
    queue_sort = type("Culprit", (ByRank,), {method: lambda self, *_: way()})()
    bench = QueueBench(queue_sort=queue_sort)
    names = [f"web-{number}" for number in range(20)]
    bench.add(*(ranked_pod(name, number) for number, name in enumerate(names)))
    assert sorted(bench.popped_names()) == sorted(names)
    answers = way in ODD_VALUES.values()
    truth = answers and isinstance(way(), bool)
    # Any value that can be compared is a key.
    if not truth and not (answers and method == "sort_key"):
        assert {point for _, point, _ in bench.recorder.failures} == {"QueueSort"}


def test_keys_that_compare_with_the_first_and_not_with_each_other_lose_no_pod() -> None:
    keys = iter([5, *([1.5, np.array([1, 2]), True] * 6), float("nan")])
    queue_sort = type("Culprit", (ByRank,), {"sort_key": lambda self, info: next(keys)})()
    bench = QueueBench(queue_sort=queue_sort)
    names = [f"web-{number}" for number in range(20)]
    bench.add(*(pod(name) for name in names))
    assert sorted(bench.popped_names()) == sorted(names)
