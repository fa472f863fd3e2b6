"""What a world costs: forks of a large cluster, until and when they are written to, and the worlds of a preemption."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final

import msgspec
from rich.table import Table

from benchmarks.nodes import node
from benchmarks.targets import Check, at_most
from podium import Cluster
from podium.config import default_configuration, load
from podium.engine.store import ObjectStore
from podium.framework.profile.runtime import registry_of
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from podium.plugins import IN_TREE
from podium.testing import pod

_NODE_COUNT: Final = 5_000
_POD_COUNT: Final = 50_000
_FORKS: Final = 1_000
_WRITTEN: Final = 20
_FORK_MS_MAX: Final = 2.0
_FORK_KB_MAX: Final = 200.0
_VICTIM_NODE_COUNT: Final = 2_000
_VICTIM_COUNT: Final = 700
_VICTIMS_MS_MAX: Final = 1_000.0
_PREEMPTIONS: Final = 5
_ALL_CANDIDATES: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"pluginConfig": [{"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 100}}]},
    ],
}
_APART: Final = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "filler"}}}
            ]
        }
    }
}
"""Filters have to see the pods that are left on each node, not only their requests."""


@dataclass(frozen=True, slots=True)
class ForkCosts:
    """Units: milliseconds of wall time and kilobytes for one fork, medians where there are several."""

    nodes: int
    pods: int
    alive: int
    fork_ms: float
    fork_kb: float
    first_pod_ms: float
    first_node_ms: float
    next_change_ms: float
    written_kb: float


@dataclass(frozen=True, slots=True)
class VictimCosts:
    """Units: milliseconds of wall time for one attempt that weighs all victims, medians.

    Attributes:
        plain_ms: of a pod that asks for resources.
        apart_ms: of a pod with anti-affinity against the victims.
    """

    nodes: int
    victims: int
    plain_ms: float
    apart_ms: float


def measure_victims(nodes: int = _VICTIM_NODE_COUNT, victims: int = _VICTIM_COUNT) -> VictimCosts:
    """Let pods that fit nowhere preempt: every node is full, and some of them of pods with a lower priority."""
    node_objects = [msgspec.convert(node(number), Node) for number in range(nodes)]
    fillers = (
        pod(
            f"filler-{number:06}",
            node=node_object.name,
            cpu=str(node_object.status.allocatable["cpu"]),
            labels={"app": "filler"},
            spec={"priority": 0 if number < victims else 1_000},
        )
        for number, node_object in enumerate(node_objects)
    )
    objects = [*((NODES, node_object) for node_object in node_objects), *((PODS, filler) for filler in fillers)]
    cluster = Cluster(load(json.dumps(_ALL_CANDIDATES), "config", registry_of(IN_TREE)).config, ObjectStore(objects))
    plain, apart = (
        pod("asked", cpu="1", spec={"schedulerName": "default-scheduler", "priority": 100, **spec})
        for spec in ({}, _APART)
    )
    times = [
        median(_ms(partial(_preempt, cluster, preemptor)) for _ in range(_PREEMPTIONS)) for preemptor in (plain, apart)
    ]
    return VictimCosts(nodes, victims, *times)


def _preempt(cluster: Cluster, preemptor: Pod) -> None:
    assert cluster.place(preemptor).victims, "no victim was found"


def measure(nodes: int = _NODE_COUNT, pods: int = _POD_COUNT, forks: int = _FORKS) -> ForkCosts:
    """Fork a cluster, and write to some of the forks."""
    cluster = _cluster(nodes, pods)
    cluster.evaluate(pod("asked", spec={"schedulerName": "default-scheduler"}))
    worlds: list[Cluster] = []
    fork_ms = _ms(lambda: worlds.extend(cluster.fork() for _ in range(forks)))
    fork_kb = _kb(lambda: worlds.extend(cluster.fork() for _ in range(forks)))
    written_worlds, node_name = min(_WRITTEN, forks // 3), cluster.nodes[1].name
    first_pod = [_ms(partial(world.remove, "Pod", "pod-000001")) for world in worlds[:written_worlds]]
    first_node = [
        _ms(partial(world.remove, "Node", node_name)) for world in worlds[written_worlds : 2 * written_worlds]
    ]
    next_change = [_ms(partial(world.remove, "Pod", "pod-000002")) for world in worlds[:written_worlds]]
    written_kb = _kb(partial(worlds[-1].remove, "Pod", "pod-000001"))
    medians = map(median, (first_pod, first_node, next_change))
    return ForkCosts(nodes, pods, forks, fork_ms / forks, fork_kb / forks, *medians, written_kb)


def _cluster(nodes: int, pods: int) -> Cluster:
    node_objects = [msgspec.convert(node(number), Node) for number in range(nodes)]
    running = (
        pod(f"pod-{number:06}", node=node_objects[number % nodes].name, cpu="100m", labels={"app": f"{number % 50}"})
        for number in range(pods)
    )
    objects = [*((NODES, node_object) for node_object in node_objects), *((PODS, pod_object) for pod_object in running)]
    return Cluster(default_configuration(), ObjectStore(objects))


def _ms(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return (time.perf_counter() - started_s) * 1e3


def _kb(work: Callable[[], object]) -> float:
    """What is still there of the memory that it has taken."""
    gc.collect()
    tracemalloc.start()
    start_bytes = tracemalloc.get_traced_memory()[0]
    work()
    traced_bytes = tracemalloc.get_traced_memory()[0] - start_bytes
    tracemalloc.stop()
    return traced_bytes / 1e3


def checks(costs: ForkCosts, victims: VictimCosts) -> list[Check]:
    """What was promised of a fork that is not written to, and of a preemption."""
    size = f"a fork of {costs.nodes:,} nodes and {costs.pods:,} pods"
    return [
        at_most(f"{size}, {costs.alive:,} alive", costs.fork_ms, _FORK_MS_MAX, " ms"),
        at_most(f"{size}, until it is written to", costs.fork_kb, _FORK_KB_MAX, " kB"),
        at_most(
            f"{victims.victims:,} candidate victims over {victims.nodes:,} nodes",
            max(victims.plain_ms, victims.apart_ms),
            _VICTIMS_MS_MAX,
            " ms",
        ),
    ]


def table(costs: ForkCosts, victims: VictimCosts) -> Table:
    """What people read."""
    rich_table = Table("", "one fork", title="Worlds: forks of a cluster", title_justify="left")
    for heading, value in (
        ("nodes", f"{costs.nodes:,}"),
        ("pods", f"{costs.pods:,}"),
        ("alive", f"{costs.alive:,}"),
        ("fork ms", f"{costs.fork_ms:.3f}"),
        ("fork kB", f"{costs.fork_kb:.3f}"),
        ("first pod ms", f"{costs.first_pod_ms:.1f}"),
        ("first node ms", f"{costs.first_node_ms:.1f}"),
        ("next change ms", f"{costs.next_change_ms:.3f}"),
        ("written kB", f"{costs.written_kb:,.0f}"),
        (f"{victims.victims:,} victims ms", f"{victims.plain_ms:.1f}"),
        ("with anti-affinity ms", f"{victims.apart_ms:.1f}"),
    ):
        rich_table.add_row(heading, value)
    return rich_table
