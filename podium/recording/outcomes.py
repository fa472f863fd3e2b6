"""Computes the outcomes of a counterfactual replay, and the Pareto front of several replays.

Pure. All times are virtual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from operator import le
from statistics import fmean, median
from typing import Any, Final

from podium.objects.core import Node, Pod
from podium.objects.requests import node_allocatable, requests_on_node
from podium.objects.topology_labels import ZONE
from podium.recording.simulated_api import PodStory

_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class State:
    """The utilisation of the cluster at one time.

    Attributes:
        cpu, memory: the requested share, averaged over the nodes.
        fragmentation: the share of the free CPU on nodes without capacity for the typical pod.
        spread: the difference between the zones with the most and the fewest pods, as a share of all pods with a zone.
    """

    cpu: float
    memory: float
    fragmentation: float
    spread: float


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of one replay.

    Attributes:
        placed, pending: the numbers of pods bound, and of pods waiting at the end. Pods that were deleted or ended
            before their binding are neither.
        bind_s_p50, bind_s_p99: the time from a pod's creation to its binding; None if no pod was bound.
        cpu, memory, fragmentation, spread: those of `State`, averaged over time.
        preemptions: the number of evicted pods.
    """

    attempts: int
    placed: int
    pending: int
    bind_s_p50: float | None
    bind_s_p99: float | None
    cpu: float
    memory: float
    fragmentation: float
    spread: float
    preemptions: int

    def as_value(self) -> dict[str, Any]:
        """Return the outcomes as JSON values."""
        return asdict(self)


def state_of(nodes: Iterable[Node], pods: Iterable[Pod], typical: tuple[int, int]) -> State:
    """Return the state of a cluster.

    Args:
        typical: CPU (milli) and memory (bytes) of the typical pod.
    """
    usage: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pod in pods:
        if pod.node_name and not pod.has_ended:
            requests, totals = requests_on_node(pod), usage[pod.node_name]
            totals[0] += requests.get("cpu", 0)
            totals[1] += requests.get("memory", 0)
            totals[2] += 1
    shares: list[tuple[float, float]] = []
    free_cpu = stranded_cpu = 0
    count_by_zone: dict[str, int] = defaultdict(int)
    for node in nodes:
        allocatable, pods_max = node_allocatable(node)
        cpu, memory, count = usage[node.metadata.name]
        free = (allocatable.get("cpu", 0) - cpu, allocatable.get("memory", 0) - memory)
        shares.append((_share(cpu, allocatable.get("cpu", 0)), _share(memory, allocatable.get("memory", 0))))
        free_cpu += max(free[0], 0)
        # Free cpu is stranded where a typical pod does not fit for another reason.
        if free[0] < typical[0] or free[1] < typical[1] or count >= pods_max:
            stranded_cpu += max(free[0], 0)
        if zone := node.metadata.labels.get(ZONE):
            count_by_zone[zone] += count
    zone_counts = count_by_zone.values()
    return State(
        cpu=_mean(cpu for cpu, _ in shares),
        memory=_mean(memory for _, memory in shares),
        fragmentation=_share(stranded_cpu, free_cpu),
        spread=_share(max(zone_counts) - min(zone_counts), sum(zone_counts)) if count_by_zone else 0.0,
    )


def typical_requests(pods: Sequence[Pod]) -> tuple[int, int]:
    """Return the medians of CPU (milli) and memory (bytes) over the pods."""
    requests = [requests_on_node(pod) for pod in pods]
    if not requests:
        return 0, 0
    cpu, memory = (median(amounts.get(name, 0) for amounts in requests) for name in ("cpu", "memory"))
    return int(cpu), int(memory)


def outcomes(stories: Iterable[PodStory], states: Sequence[State], *, attempts: int, preemptions: int) -> Outcomes:
    """Compute the outcomes from the pods' stories and from states at equal intervals."""
    pods = list(stories)
    waits = sorted(pod.bound_s - pod.seen_s for pod in pods if pod.bound_s is not None)
    return Outcomes(
        attempts=attempts,
        placed=len(waits),
        pending=sum(pod.bound_s is None and not pod.is_gone for pod in pods),
        bind_s_p50=_quantile(waits, 0.5),
        bind_s_p99=_quantile(waits, 0.99),
        cpu=_mean(state.cpu for state in states),
        memory=_mean(state.memory for state in states),
        fragmentation=_mean(state.fragmentation for state in states),
        spread=_mean(state.spread for state in states),
        preemptions=preemptions,
    )


_FEWER_IS_BETTER: Final = ("pending", "bind_s_p50", "bind_s_p99", "fragmentation", "spread", "preemptions")


def pareto_front(results: Sequence[Outcomes]) -> list[bool]:
    """Return for each result True if no other result is at least as good in every goal and better in one.

    The goals: more pods placed; fewer `pending` and preemptions, shorter times, less fragmentation and spread.
    Utilisation is not a goal: it follows from the pods placed.
    """
    scores = [_goal_values(result) for result in results]
    return [not any(_dominates(rival, score) for rival in scores) for score in scores]


def _goal_values(result: Outcomes) -> tuple[float, ...]:
    # Signs are turned, so that less is better everywhere.
    """Return one value for each goal, of which smaller ones are better."""
    values = (getattr(result, name) for name in _FEWER_IS_BETTER)
    return (-result.placed, *(float("inf") if value is None else value for value in values))


def _dominates(rival: tuple[float, ...], score: tuple[float, ...]) -> bool:
    return rival != score and all(map(le, rival, score))


def _quantile(values: Sequence[float], share: float) -> float | None:
    """Return the nearest-rank quantile of the sorted values."""
    if not values:
        return None
    # Nearest rank, in integers: interpolation would invent waits that no pod had.
    return round(values[max(-int(-len(values) * share // 1), 1) - 1], _DIGITS)


def _share(part: int, total: int) -> float:
    return part / total if total > 0 else 0.0


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return round(fmean(numbers), _DIGITS) if numbers else 0.0
