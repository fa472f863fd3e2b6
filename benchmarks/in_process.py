"""The engine alone, on one core and without an API server: cache, snapshot, scheduling attempt, assumption."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import msgspec
from rich.table import Table

from benchmarks.schedulers import configuration
from benchmarks.workloads import Workload, node
from podium.cluster import Cache
from podium.config import load
from podium.framework.cycle_state import CycleState
from podium.framework.runtime import Framework
from podium.framework.schedule import Suggested, schedule
from podium.framework.search import NoNominatedPods, Rotation
from podium.kube.errors import FieldError
from podium.kube.objects import Node, Pod
from podium.plugins import IN_TREE
from podium.telemetry import Metrics
from podium.testing.handle import StillHandle

NODES = (1_000, 5_000, 15_000)

_SEED = 1


@dataclass(frozen=True, slots=True)
class Rate:
    """Attempts of one workload at one size. Units: seconds of CPU."""

    workload: str
    nodes: int
    attempts: int
    cpu_s: float

    @property
    def attempts_per_s(self) -> float:
        return self.attempts / self.cpu_s

    @property
    def us_per_attempt(self) -> float:
        return self.cpu_s / self.attempts * 1e6


class Engine:
    """A cache full of nodes and the default profile; `attempt` is what the daemon's loop does between two awaits."""

    def __init__(self, nodes: int) -> None:
        self._cache = Cache(_no_broken_object)
        for number in range(nodes):
            self._cache.put_node(msgspec.convert(node(number), Node))
        profile = load(msgspec.json.encode(configuration()).decode(), "benchmark").config.profiles[0]
        self._framework = Framework(profile, IN_TREE, StillHandle(self._cache.snapshot()), Metrics())
        self._rotation = Rotation()
        self._nominated = NoNominatedPods()
        self.placed = 0

    def attempt(self, pod: Pod) -> None:
        """Decide on the pod and assume it."""
        snapshot = self._cache.snapshot()
        decision = schedule(self._framework, CycleState(), pod, snapshot, self._nominated, self._rotation, 0)
        assert isinstance(decision, Suggested), f"{pod.key}: {decision}"
        self._cache.assume_pod(pod, decision.node_name)
        self.placed += 1


def _no_broken_object(item: Node | Pod, error: FieldError) -> None:
    raise AssertionError(f"{item.key}: {error}")


def pods_of(workload: Workload, count: int) -> list[Pod]:
    """Decoded as the informer decodes them."""
    wires = [workload.pod(number) for number in range(count)]
    for number, wire in enumerate(wires):
        wire["metadata"]["uid"] = f"uid-{number}"
    return [msgspec.convert(wire, Pod) for wire in wires]


def measure(workload: Workload, nodes: int, attempts: int) -> Rate:
    """One backlog over an empty cluster. The first attempt, which builds columns, is not counted."""
    engine = Engine(nodes)
    first, *others = pods_of(workload, attempts + 1)
    engine.attempt(first)
    started_s = time.process_time()
    for pod in others:
        engine.attempt(pod)
    return Rate(workload.name, nodes, attempts, time.process_time() - started_s)


def median_rate(rates: Sequence[Rate]) -> Rate:
    """The rate of the median run; all are of one workload and size."""
    first = rates[0]
    return Rate(first.workload, first.nodes, first.attempts, median(each.cpu_s for each in rates))


def table(rates: Sequence[Rate]) -> Table:
    """What people read."""
    shown = Table(title="podium's engine alone, one core", title_justify="left")
    shown.add_column("workload")
    for heading in ("nodes", "attempts", "attempts/s", "µs per attempt"):
        shown.add_column(heading, justify="right")
    for each in rates:
        figures = (each.nodes, each.attempts, each.attempts_per_s, each.us_per_attempt)
        shown.add_row(each.workload, *(f"{figure:,.0f}" for figure in figures))
    return shown
