"""The engine alone, on one core and without an API server: cache, snapshot, scheduling attempt, assumption."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

import msgspec
from rich.table import Table

from benchmarks.nodes import Json, node
from benchmarks.schedulers import configuration
from benchmarks.targets import Check, at_least
from benchmarks.workloads import WARM_UP, Workload
from podium.cluster import Cache
from podium.config import load
from podium.daemon.observers import PluginMetrics
from podium.framework.cycle_state import CycleState
from podium.framework.promises import NoNominatedPods
from podium.framework.runtime import Framework
from podium.framework.schedule import Suggested, schedule
from podium.framework.search import Rotation
from podium.kube.errors import FieldError
from podium.kube.objects import Node, Pod
from podium.kube.resource_types import ALL, KubeObject
from podium.plugins import IN_TREE
from podium.telemetry import Metrics
from podium.testing.handle import StillHandle

NODES: Final = (1_000, 5_000, 15_000)
ATTEMPTS: Final = 2_000

# Attempts per second on one core, by workload and nodes.
_TARGETS: Final = {
    ("plain", 5_000): 5_000,
    ("zone-spread", 5_000): 2_000,
    ("zone-spread-soft", 5_000): 2_000,
    ("pod-affinity", 5_000): 2_000,
    ("pod-affinity-preferred", 5_000): 2_000,
    ("plain", 15_000): 3_000,
}

_TYPES = {each.kind: each.type for each in ALL}


@dataclass(frozen=True, slots=True)
class Rate:
    """Attempts of one workload at one size. Units: seconds of CPU."""

    workload: str
    nodes: int
    running: int
    attempts: int
    cpu_s: float

    @property
    def attempts_per_s(self) -> float:
        return self.attempts / self.cpu_s

    @property
    def us_per_attempt(self) -> float:
        return self.cpu_s / self.attempts * 1e6


class Engine:
    """A cache full of nodes and the default profile; `attempt` is what the daemon's loop does between two awaits.

    Args:
        before: what there is beside the nodes; bound pods go to the cache, the rest to the listers.
    """

    def __init__(self, nodes: int, before: Iterable[Json] = ()) -> None:
        self._cache = Cache(_no_broken_object)
        for number in range(nodes):
            self._cache.put_node(msgspec.convert(node(number), Node))
        listed = []
        for each in decoded(before):
            if isinstance(each, Pod):
                self._cache.add_pod(each)
            else:
                listed.append(each)
        profile = load(msgspec.json.encode(configuration()).decode(), "benchmark").config.profiles[0]
        handle = StillHandle(self._cache.snapshot(), listed)
        self._framework = Framework(profile, IN_TREE, handle, PluginMetrics(Metrics()))
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


def decoded(objects: Iterable[Json]) -> Iterator[KubeObject]:
    """As the informers decode them, each with a uid of its own."""
    for number, wire in enumerate(objects):
        wire["metadata"]["uid"] = f"{wire['metadata']['name']}-{number}"
        yield msgspec.convert(wire, _TYPES[wire["kind"]])


def pods_of(workload: Workload, count: int) -> list[Pod]:
    """The measured pods."""
    return [each for each in decoded(map(workload.pod, range(count))) if isinstance(each, Pod)]


def measure(workload: Workload, nodes: int, attempts: int, repeat: int, running: int | None = None) -> Rate:
    """The median of some backlogs, one after the other in one cluster. The first attempts build columns: not counted.

    Args:
        running: how many pods of its kind run already, by default as many as on a real API server.
    """
    attempts = workload.pods_that_fit(nodes, attempts * repeat) // repeat
    count = WARM_UP + attempts * repeat
    engine = Engine(nodes, workload.objects_before(nodes, count, running))
    pods = pods_of(workload, count)
    with _settled_garbage_collector():
        _cpu_s(engine, pods[:WARM_UP])
        spent_s = [_cpu_s(engine, pods[start : start + attempts]) for start in range(WARM_UP, count, attempts)]
    if running is None:
        running = workload.running_count(nodes)
    return Rate(workload.name, nodes, running, attempts, median(spent_s))


def _cpu_s(engine: Engine, pods: Sequence[Pod]) -> float:
    started_s = time.process_time()
    for pod in pods:
        engine.attempt(pod)
    return time.process_time() - started_s


@contextmanager
def _settled_garbage_collector() -> Iterator[None]:
    """As the daemon does after its sync: keep the collector from walking over the cluster again and again."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Those that have a target."""
    return [
        at_least(f"{each.workload}, {each.nodes:,} nodes", each.attempts_per_s, target, " attempts/s")
        for each in rates
        if (target := _TARGETS.get((each.workload, each.nodes)))
    ]


def table(rates: Sequence[Rate]) -> Table:
    """What people read."""
    shown = Table(title="podium's engine alone, one core", title_justify="left")
    shown.add_column("workload")
    for heading in ("nodes", "running pods", "attempts", "attempts/s", "µs per attempt"):
        shown.add_column(heading, justify="right")
    for each in rates:
        figures = (each.nodes, each.running, each.attempts, each.attempts_per_s, each.us_per_attempt)
        shown.add_row(each.workload, *(f"{figure:,.0f}" for figure in figures))
    return shown
