"""Very large clusters without an API server: as many plain pods as nodes, by shards in processes of their own.

Every shard has the nodes and the pods that rendezvous hashing gives it, as members of `podium run --shards` have. How
long so many cores would take is the CPU time of the shard that takes longest, on however few cores they take turns.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from rich.table import Table

from benchmarks.in_process import FullCluster, settled_garbage_collector
from benchmarks.nodes import name, node
from benchmarks.processor_time import rss_bytes
from benchmarks.targets import Check, at_most
from benchmarks.workloads import WORKLOADS
from podium.lib.lifeline import end_with_pool_owner
from podium.objects.core import Node, Pod
from podium.shards import owner

_WARM_UP: Final = 100
"""Pods of each shard before the measured ones: the first attempts build columns."""
_AT_ONCE: Final = 1_000
"""Pods are made in so many at a time, so that those that wait do not count as memory of the nodes."""


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster, how many shards divide it, and the most seconds that the slowest may take."""

    nodes: int
    pods: int
    shards: int
    cpu_s_max: float


SIZES: Final = (Size(100_000, 100_000, 1, 15.0), Size(1_000_000, 1_000_000, 16, 60.0))
_KB_PER_NODE_MAX: Final = 100.0


def sizes(nodes: Sequence[int] | None, pods: int | None) -> Sequence[Size]:
    """Return the clusters to measure: those with a target, or of so many nodes, with as many pods by default."""
    if nodes is None:
        return SIZES
    shards = SIZES[-1].shards
    return [Size(count, pods or count, 1 if count <= SIZES[0].nodes else shards, 0.0) for count in nodes]


@dataclass(frozen=True, slots=True)
class ShardCost:
    """What one shard took.

    Attributes:
        cpu_s: to decide on its pods and assume them, after the warm-up.
        bytes_per_node: what the process has grown by with its nodes, as the cache and the snapshot keep them.
    """

    nodes: int
    pods: int
    cpu_s: float
    bytes_per_node: float


@dataclass(frozen=True, slots=True)
class ClusterCost:
    """What the shards of one cluster took, one after the other or side by side."""

    nodes: int
    pods: int
    shards: list[ShardCost]

    @property
    def slowest_s(self) -> float:
        """The CPU time of the shard that takes longest."""
        return max(shard.cpu_s for shard in self.shards)

    @property
    def us_per_pod(self) -> float:
        """The CPU time of all shards for each pod, in microseconds."""
        return sum(shard.cpu_s for shard in self.shards) / sum(shard.pods for shard in self.shards) * 1e6

    @property
    def kb_per_node(self) -> float:
        """The memory of the shard that needs most, in KB for each of its nodes."""
        return max(shard.bytes_per_node for shard in self.shards) / 1e3


def measure(sizes: Iterable[Size], tell: Callable[[str], None], processes: int | None = None) -> Iterator[ClusterCost]:
    """Yield the cost of each cluster as it is done.

    Args:
        processes: how many shards run side by side; as many as there are cores by default.
    """
    # A fresh interpreter for each shard, whose memory is its own.
    context = multiprocessing.get_context("spawn")
    for size in sizes:
        jobs = [(size.nodes, size.pods, size.shards, number) for number in range(size.shards)]
        with context.Pool(processes or os.cpu_count(), end_with_pool_owner, maxtasksperchild=1) as pool:
            shards = []
            for shard in pool.imap_unordered(measure_shard, jobs, chunksize=1):
                shards.append(shard)
                tell(f"{size.nodes:,} nodes, shard {len(shards)} of {size.shards}: {shard.cpu_s:.1f} s of CPU")
        yield ClusterCost(size.nodes, size.pods, shards)


def measure_shard(job: tuple[int, int, int, int]) -> ShardCost:
    """Fill one shard of a cluster, and decide on its pods.

    Args:
        job: the nodes and the pods of the cluster, how many shards it has, and which one this is.
    """
    nodes, pods, shards, number = job
    members = [f"m{index}" for index in range(shards)]

    def is_own(key: str) -> bool:
        return owner(key, members) == members[number]

    rss_before = _rss_bytes()
    own_nodes = (msgspec.convert(node(index), Node) for index in range(nodes) if is_own(name(index)))
    cluster = FullCluster(own_nodes)
    node_count = cluster.node_count
    bytes_per_node = (_rss_bytes() - rss_before) / max(1, node_count)
    numbers = [index for index in range(pods) if is_own(f"pod/{index}")]
    with settled_garbage_collector():
        _decide(cluster, range(pods, pods + _WARM_UP))
        cpu_s = _decide(cluster, numbers)
    return ShardCost(node_count, len(numbers), cpu_s, bytes_per_node)


def _decide(cluster: FullCluster, numbers: Sequence[int]) -> float:
    """Decide on these pods, and return the CPU seconds that it took."""
    spent_s = 0.0
    for start in range(0, len(numbers), _AT_ONCE):
        pods = [_pod(number) for number in numbers[start : start + _AT_ONCE]]
        started_s = time.process_time()
        for pod in pods:
            cluster.attempt(pod)
        spent_s += time.process_time() - started_s
    return spent_s


def _pod(number: int) -> Pod:
    wire = WORKLOADS["plain"].pod(number)
    wire["metadata"]["uid"] = f"uid-{number}"
    return msgspec.convert(wire, Pod)


def _rss_bytes() -> int:
    return rss_bytes(Path("/proc/self/status").read_text())


def checks(costs: Iterable[ClusterCost], sizes: Iterable[Size] = SIZES) -> Iterator[Check]:
    """Check the time and the memory of the sizes that have a target."""
    seconds_max = {(size.nodes, size.pods): size.cpu_s_max for size in sizes}
    for cost in costs:
        limit_s = seconds_max.get((cost.nodes, cost.pods))
        about = f"{cost.pods:,} pods over {cost.nodes:,} nodes by {len(cost.shards)} cores"
        if limit_s is not None:
            yield at_most(about, cost.slowest_s, limit_s, " s")
            yield at_most(f"{cost.nodes:,} nodes: memory", cost.kb_per_node, _KB_PER_NODE_MAX, " KB per node")


def table(costs: Iterable[ClusterCost]) -> Table:
    rich_table = Table(title="plain pods over very many nodes, in process", title_justify="left")
    for heading in ("nodes", "pods", "shards", "CPU s of the slowest", "CPU µs per pod", "KB per node"):
        rich_table.add_column(heading, justify="right")
    for cost in costs:
        rich_table.add_row(
            f"{cost.nodes:,}",
            f"{cost.pods:,}",
            f"{len(cost.shards)}",
            f"{cost.slowest_s:.1f}",
            f"{cost.us_per_pod:.0f}",
            f"{cost.kb_per_node:.1f}",
        )
    return rich_table
