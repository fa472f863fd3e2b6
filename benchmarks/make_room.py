"""How long it takes to find the moves that make room in a large cluster without an empty node."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from random import Random
from typing import Final

import msgspec
from rich.table import Table

from benchmarks.nodes import CPUS, node
from benchmarks.targets import Check, at_most
from podium.config import DEFAULT_SCHEDULER_NAME, default_configuration
from podium.engine.store import ObjectStore
from podium.insight import Cluster
from podium.insight.room.make_room import make_room
from podium.lib.system_clock import SystemClock
from podium.lib.time_limit import TimeLimit
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from podium.testing import pod

_SIZES: Final = ((1_000, 10_000, 10.0), (5_000, 50_000, 60.0))
_BYTES_MAX: Final = 2_000_000_000
_LIMIT_S: Final = 10.0
_SEED: Final = 1
_CPU_MILLI: Final = CPUS * 1_000


@dataclass(frozen=True, slots=True)
class RoomCosts:
    """One question.

    Attributes:
        peak_bytes: the most memory of the process so far.
    """

    nodes: int
    pods: int
    seconds: float
    seconds_max: float
    moves: int
    is_proven: bool
    peak_bytes: int


def measure() -> list[RoomCosts]:
    """Make room in a cluster of each size."""
    return [_measure(*size) for size in _SIZES]


def _measure(node_count: int, pod_count: int, seconds_max: float) -> RoomCosts:
    cluster, subject = _cluster(node_count, pod_count)
    started_s = time.perf_counter()
    answer = make_room(cluster, subject, TimeLimit(SystemClock(), _LIMIT_S))
    seconds = time.perf_counter() - started_s
    moves = len(answer.plan.steps) if answer.plan is not None else -1
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return RoomCosts(node_count, pod_count, seconds, seconds_max, moves, answer.is_proven, peak_bytes)


def _cluster(node_count: int, pod_count: int) -> tuple[Cluster, Pod]:
    """Fill nodes to nine tenths with pods of several sizes, and add a pod for which no node has enough free."""
    random = Random(_SEED)
    nodes = [msgspec.convert(node(number), Node) for number in range(node_count)]
    mean_milli = _CPU_MILLI * 9 // 10 * node_count // pod_count
    sizes = [mean_milli * part // 10 for part in (5, 8, 10, 12, 15)]
    free = dict.fromkeys((item.name for item in nodes), _CPU_MILLI)
    pods = []
    for number in range(pod_count):
        size = random.choice(sizes)
        name = nodes[number % node_count].name
        if free[name] < size:
            continue
        free[name] -= size
        pods.append(_running_pod(number, name, size))
    # More than any node has free, so that at least one pod has to move.
    subject = pod(
        "subject",
        cpu=f"{max(free.values()) + mean_milli // 2}m",
        labels={"app": "subject"},
        scheduler=DEFAULT_SCHEDULER_NAME,
    )
    objects = [*((NODES, item) for item in nodes), *((PODS, item) for item in pods), (PODS, subject)]
    return Cluster(default_configuration(), ObjectStore(objects)), subject


def _running_pod(number: int, node_name: str, cpu_milli: int) -> Pod:
    name = f"app-{number % 50}-{cpu_milli}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    return pod(
        f"{name}-{number}",
        node=node_name,
        cpu=f"{cpu_milli}m",
        labels={"app": name},
        scheduler=DEFAULT_SCHEDULER_NAME,
        metadata={"ownerReferences": [owner]},
    )


def checks(costs: list[RoomCosts]) -> list[Check]:
    """Check the times and the memory against their targets, and that moves were found."""
    result = []
    for cost in costs:
        size = f"make-room, {cost.nodes:,} nodes and {cost.pods:,} pods"
        result.append(at_most(size, cost.seconds if cost.moves > 0 else float("inf"), cost.seconds_max, " s"))
        result.append(at_most(f"{size}, memory", cost.peak_bytes / 1e9, _BYTES_MAX / 1e9, " GB"))
    return result


def table(costs: list[RoomCosts]) -> Table:
    """Tabulate the costs."""
    rich_table = Table("nodes", "pods", "s", "moves", "proven", "GB", title="Make room by moves", title_justify="left")
    for cost in costs:
        rich_table.add_row(
            f"{cost.nodes:,}",
            f"{cost.pods:,}",
            f"{cost.seconds:.2f}",
            str(cost.moves),
            "yes" if cost.is_proven else "no",
            f"{cost.peak_bytes / 1e9:.2f}",
        )
    return rich_table
