"""The engine alone, on one core and without an API server: cache, snapshot, scheduling attempt, assumption."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any, Final

import msgspec
from rich.table import Table

from benchmarks.nodes import Json, node
from benchmarks.schedulers import configuration
from benchmarks.targets import Check, at_least
from benchmarks.workloads import WARM_UP, Workload
from podium.cluster import Cache
from podium.config import NEWEST, parse_feature_gates
from podium.daemon.observers import PluginMetrics
from podium.engine.configurations import read_configuration
from podium.engine.flight_recorder import AttemptObserver, FlightRecorder
from podium.engine.placing import Engine
from podium.engine.pod_group_cycle import PodGroupCycle
from podium.framework.contract.queued_pod import QueuedPodInfo
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.schedule import DoesNotFit, Suggested
from podium.framework.profile.runtime import Framework
from podium.lib.garbage_collection import settle, thaw
from podium.objects.core import Node, Pod
from podium.objects.custom_resources import all_resources
from podium.objects.errors import FieldError
from podium.objects.pod_groups import group_of
from podium.objects.resource_types import POD_GROUPS, KubeObject
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.queues import Nominator
from podium.telemetry import Metrics
from podium.testing.handle import RecordingHandle

NODES: Final = (1_000, 5_000, 15_000)
ATTEMPTS: Final = 2_000
RECORDER_BYTES: Final = 32 << 20
"""As podium run has it by default."""

# Attempts per second on one core, by workload and nodes.
_TARGETS: Final = {
    ("plain", 5_000): 5_000,
    ("zone-spread", 5_000): 2_000,
    ("zone-spread-soft", 5_000): 2_000,
    ("pod-affinity", 5_000): 2_000,
    ("pod-affinity-preferred", 5_000): 2_000,
    ("plain", 15_000): 3_000,
}

_PLUGINS: Final = {**IN_TREE, **CONTRIB}
# Of two kinds of one name, that of Kubernetes itself is the first.
_TYPES = {resource_type.kind: resource_type.type for resource_type in reversed(all_resources())}


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


class FullCluster:
    """A cache full of nodes and the default profile; `attempt` is what the daemon's loop does between two awaits.

    Args:
        nodes: as the informer has them, or how many of the usual kind.
        before: what there is beside the nodes; bound pods go to the cache, the rest to the listers.
        recorder: hears of each attempt, if there is one.
        profile: what is added to the default profile.
        gates: the feature gates to switch on.
    """

    def __init__(
        self,
        nodes: int | Iterable[Node],
        objects_before: Iterable[Json] = (),
        recorder: AttemptObserver | None = None,
        profile: Mapping[str, Any] = MappingProxyType({}),
        gates: Sequence[str] = (),
    ) -> None:
        self._recorder = recorder
        # The daemon's queue makes one for every pod, with or without a recorder, so making it is no cost of one.
        self._info = QueuedPodInfo(Pod(), 0.0, attempts=1)
        self._cache = Cache(_no_broken_object)
        for cluster_node in _usual_nodes(nodes) if isinstance(nodes, int) else nodes:
            self._cache.put_node(cluster_node)
        handle_events = []
        for item in decode(objects_before):
            if isinstance(item, Pod):
                self._cache.add_pod(item)
            else:
                handle_events.append(item)
        text = msgspec.json.encode(configuration(profile)).decode()
        config_gates = parse_feature_gates([f"{gate}=true" for gate in gates], NEWEST)
        config = read_configuration(text, "benchmark", _PLUGINS, config_gates)
        handle = RecordingHandle(self._cache.snapshot(), handle_events)
        if config_gates.pod_groups is not None:
            self._cache.pod_groups = handle.pod_groups.states
        self._pod_groups, self._group_objects = handle.pod_groups, handle.lister(POD_GROUPS)
        self._framework = Framework(config.profiles[0], _PLUGINS, handle, PluginMetrics(Metrics()))
        self._waiting: dict[str, Pod] = {}
        handle.nominator = Nominator(self._waiting.get)
        self._engine = Engine(
            self._cache, handle.nominator, percentage_of_nodes_to_score=0, keeps_scores=recorder is not None
        )
        self.placed = 0

    @property
    def node_count(self) -> int:
        return len(self._cache.snapshot())

    def attempt(self, pod: Pod) -> None:
        """Decide on the pod and assume it."""
        cycle = self._engine.cycle(self._framework, pod)
        decision = self._engine.decide(cycle)
        assert isinstance(decision, Suggested), f"{pod.key}: {decision}"
        placement = self._engine.place(cycle, decision.node_name)
        assert placement.status is None, f"{pod.key}: {placement.status}"
        self.placed += 1
        if self._recorder is not None:
            self._recorder.on_decision(self._info, cycle, decision, 0.0, 0.0)
            self._recorder.on_bound(pod, 0.0)

    def reject(self, pod: Pod) -> str:
        """Decide on a pod that fits nowhere, and return the text of its condition."""
        decision = self._engine.decide(self._engine.cycle(self._framework, pod))
        assert isinstance(decision, DoesNotFit), f"{pod.key}: {decision}"
        return decision.error.message

    def preempt(self, pod: Pod) -> None:
        """Find victims for the pod, and nominate it."""
        decision = self._engine.decide(self._engine.cycle(self._framework, pod))
        assert isinstance(decision, DoesNotFit), f"{pod.key}: {decision}"
        result = decision.post_filter
        assert result is not None, f"{pod.key}: {decision}"
        assert result.victims, f"{pod.key}: {decision}"
        self._waiting[pod.key] = pod
        self._engine.nominator.add(pod, result.nominated_node_name)

    def attempt_group(self, pods: Sequence[Pod]) -> None:
        """Decide on all waiting pods of a group together, and assume them."""
        key = group_of(pods[0])
        assert key is not None
        for pod in pods:
            self._pod_groups.states.put_waiting(pod)
        group, state = self._group_objects.get(key), self._pod_groups.state(key)
        assert state is not None
        frameworks = {pods[0].spec.scheduler_name: self._framework}
        cycle = PodGroupCycle(self._engine, frameworks, self._pod_groups.rules, key, group, pods, state)
        for member_cycle, decision in run_unasked(cycle.attempt()).members:
            assert isinstance(decision, Suggested), f"{member_cycle.pod.key}: {decision}"
            placement = self._engine.place(member_cycle, decision.node_name)
            assert placement.status is None, f"{member_cycle.pod.key}: {placement.status}"
            self.placed += 1


def _usual_nodes(count: int) -> Iterator[Node]:
    return (msgspec.convert(node(number), Node) for number in range(count))


def _no_broken_object(item: Node | Pod, error: FieldError) -> None:
    raise AssertionError(f"{item.key}: {error}")


def decode(objects: Iterable[Json]) -> Iterator[KubeObject]:
    """As the informers decode them, each with a uid of its own."""
    for number, wire in enumerate(objects):
        wire["metadata"]["uid"] = f"{wire['metadata']['name']}-{number}"
        yield msgspec.convert(wire, _TYPES[wire["kind"]])


def pods_of(workload: Workload, count: int) -> list[Pod]:
    """The measured pods."""
    return [pod_object for pod_object in decode(map(workload.pod, range(count))) if isinstance(pod_object, Pod)]


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster: its nodes, and how many pods of the measured kind run there, None for as many as on a real server."""

    nodes: int
    running: int | None = None


def measure(workload: Workload, nodes: int, attempts: int, repeat: int) -> Rate:
    """The median of some backlogs, one after the other in one cluster."""
    return measure_in_turn([(workload, Size(nodes))], attempts, repeat)[0]


def measure_in_turn(cases: Sequence[tuple[Workload, Size]], attempts: int, rounds: int) -> list[Rate]:
    """The median of some rounds, in which each cluster has its turn: what disturbs the machine disturbs them all.

    The first attempts build columns: not counted.
    """
    return _rates_in_turn([_Backlog(workload, size, attempts, rounds) for workload, size in cases], rounds)


def measure_with_recorder(workload: Workload, nodes: int, attempts: int, rounds: int) -> list[Rate]:
    """The same attempts without the flight recorder and with it, in turn."""
    recorders = None, FlightRecorder(RECORDER_BYTES)
    return _rates_in_turn(
        [_Backlog(workload, Size(nodes), attempts, rounds, recorder) for recorder in recorders], rounds
    )


def _rates_in_turn(backlogs: Sequence[_Backlog], rounds: int) -> list[Rate]:
    with settled_garbage_collector():
        for backlog in backlogs:
            backlog.warm_up()
        for _ in range(rounds):
            for backlog in backlogs:
                backlog.take_turn()
    return [backlog.rate() for backlog in backlogs]


class _Backlog:
    """Pods for so many rounds in a cluster of one size."""

    def __init__(
        self, workload: Workload, size: Size, attempts: int, rounds: int, recorder: AttemptObserver | None = None
    ) -> None:
        self._workload = workload
        self._size = size
        self._attempts = workload.pods_that_fit(size.nodes, attempts * rounds) // rounds
        count = WARM_UP + self._attempts * rounds
        objects_before = workload.objects_before(size.nodes, count, size.running)
        self._cluster = FullCluster(size.nodes, objects_before, recorder, workload.profile)
        self._pods = iter(pods_of(workload, count))
        self._spent_s: list[float] = []

    def warm_up(self) -> None:
        _cpu_s(self._cluster, list(itertools.islice(self._pods, WARM_UP)))

    def take_turn(self) -> None:
        self._spent_s.append(_cpu_s(self._cluster, list(itertools.islice(self._pods, self._attempts))))

    def rate(self) -> Rate:
        running = self._size.running
        if running is None:
            running = self._workload.running_count(self._size.nodes)
        return Rate(self._workload.name, self._size.nodes, running, self._attempts, median(self._spent_s))


def _cpu_s(cluster: FullCluster, pods: Sequence[Pod]) -> float:
    started_s = time.process_time()
    for pod in pods:
        cluster.attempt(pod)
    return time.process_time() - started_s


@contextmanager
def settled_garbage_collector() -> Iterator[None]:
    """As the daemon does after its sync: keep the collector from walking over the cluster again and again."""
    thresholds = gc.get_threshold()
    settle()
    try:
        yield
    finally:
        thaw()
        gc.set_threshold(*thresholds)


def checks(rates: Sequence[Rate]) -> list[Check]:
    """Those that have a target."""
    return [
        at_least(f"{rate.workload}, {rate.nodes:,} nodes", rate.attempts_per_s, target, " attempts/s")
        for rate in rates
        if (target := _TARGETS.get((rate.workload, rate.nodes)))
    ]


def table(rates: Sequence[Rate]) -> Table:
    rich_table = Table(title="podium's engine alone, one core", title_justify="left")
    rich_table.add_column("workload")
    for heading in ("nodes", "running pods", "attempts", "attempts/s", "µs per attempt"):
        rich_table.add_column(heading, justify="right")
    for rate in rates:
        figures = (rate.nodes, rate.running, rate.attempts, rate.attempts_per_s, rate.us_per_attempt)
        rich_table.add_row(rate.workload, *(f"{figure:,.0f}" for figure in figures))
    return rich_table
