"""What a counterfactual replay has come to, in numbers, and which of several outcomes are not beaten.

Pure. Times are virtual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any, Final

from podium.objects.core import Node, Pod
from podium.objects.requests import node_allocatable, requests_on_node
from podium.objects.topology_labels import ZONE
from podium.recording.simulated_api import PodStory

_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class State:
    """The cluster at one time.

    Attributes:
        cpu, memory: the mean over the nodes of the requested share.
        fragmentation: the share of the free CPU that lies on nodes without room for the typical pod.
        spread: the difference between the zones with the most and the fewest pods, as a share of all pods with a zone.
    """

    cpu: float
    memory: float
    fragmentation: float
    spread: float


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The numbers of one replay.

    Attributes:
        placed, pending: the pods that were bound, and those that wait at the end. Pods that were deleted or ended
            before they were bound are neither.
        bind_s_p50, bind_s_p99: from a pod's creation to its binding; None if no pod was bound.
        cpu, memory, fragmentation, spread: means over time of those of `State`.
        preemptions: the pods that were evicted.
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
        """As JSON values."""
        return asdict(self)


def state_of(nodes: Iterable[Node], pods: Iterable[Pod], typical: tuple[int, int]) -> State:
    """The cluster as it is now.

    Args:
        typical: CPU (milli) and memory (bytes) of the typical pod.
    """
    used: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pod in pods:
        if pod.node_name and not pod.has_ended:
            requests, counts = requests_on_node(pod), used[pod.node_name]
            counts[0] += requests.get("cpu", 0)
            counts[1] += requests.get("memory", 0)
            counts[2] += 1
    shares: list[tuple[float, float]] = []
    free_cpu = stranded_cpu = 0
    zones: dict[str, int] = defaultdict(int)
    for node in nodes:
        allocatable, pods_max = node_allocatable(node)
        cpu, memory, count = used[node.metadata.name]
        room = (allocatable.get("cpu", 0) - cpu, allocatable.get("memory", 0) - memory)
        shares.append((_share(cpu, allocatable.get("cpu", 0)), _share(memory, allocatable.get("memory", 0))))
        free_cpu += max(room[0], 0)
        if room[0] < typical[0] or room[1] < typical[1] or count >= pods_max:
            stranded_cpu += max(room[0], 0)
        if zone := node.metadata.labels.get(ZONE):
            zones[zone] += count
    counts_by_zone = zones.values()
    return State(
        cpu=_mean(each[0] for each in shares),
        memory=_mean(each[1] for each in shares),
        fragmentation=_share(stranded_cpu, free_cpu),
        spread=_share(max(counts_by_zone) - min(counts_by_zone), sum(counts_by_zone)) if zones else 0.0,
    )


def typical_requests(pods: Sequence[Pod]) -> tuple[int, int]:
    """CPU (milli) and memory (bytes) of the typical pod: the medians."""
    requests = [requests_on_node(pod) for pod in pods]
    if not requests:
        return 0, 0
    return int(median(each.get("cpu", 0) for each in requests)), int(median(each.get("memory", 0) for each in requests))


def outcomes(stories: Iterable[PodStory], states: Sequence[State], *, attempts: int, preemptions: int) -> Outcomes:
    """The numbers, from what has become of the pods and from states at equal intervals."""
    known = list(stories)
    waits = sorted(each.bound_s - each.seen_s for each in known if each.bound_s is not None)
    return Outcomes(
        attempts=attempts,
        placed=len(waits),
        pending=sum(each.bound_s is None and not each.is_gone for each in known),
        bind_s_p50=_quantile(waits, 0.5),
        bind_s_p99=_quantile(waits, 0.99),
        cpu=_mean(each.cpu for each in states),
        memory=_mean(each.memory for each in states),
        fragmentation=_mean(each.fragmentation for each in states),
        spread=_mean(each.spread for each in states),
        preemptions=preemptions,
    )


_FEWER_IS_BETTER: Final = ("pending", "bind_s_p50", "bind_s_p99", "fragmentation", "spread", "preemptions")


def pareto_front(found: Sequence[Outcomes]) -> list[bool]:
    """For each outcome, whether no other is at least as good in everything and better in something.

    More is better of the pods placed; less of `pending`, times, fragmentation, spread and preemptions. Utilisation
    does not count: it follows from the pods placed.
    """
    goals = [_goals(each) for each in found]
    return [not any(_beats(other, own) for other in goals) for own in goals]


def _goals(found: Outcomes) -> tuple[float, ...]:
    values = (getattr(found, name) for name in _FEWER_IS_BETTER)
    return (-found.placed, *(float("inf") if value is None else value for value in values))


def _beats(other: tuple[float, ...], own: tuple[float, ...]) -> bool:
    return other != own and all(one <= two for one, two in zip(other, own, strict=True))


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed."""
    if not ordered:
        return None
    return round(ordered[max(-int(-len(ordered) * share // 1), 1) - 1], _DIGITS)


def _share(part: int, whole: int) -> float:
    return part / whole if whole > 0 else 0.0


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return round(fmean(known), _DIGITS) if known else 0.0
