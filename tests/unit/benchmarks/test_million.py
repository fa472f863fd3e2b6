"""Tests for very large clusters, small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import million
from benchmarks.million import SIZES, ClusterCost, ShardCost, Size

SHARD = ShardCost(nodes=62_500, pods=62_500, cpu_s=10.0, bytes_per_node=20_000.0)
COST = ClusterCost(1_000_000, 1_000_000, [SHARD] * 15 + [replace(SHARD, cpu_s=12.5)])


def test_shards_divide_all_nodes_and_pods_and_each_pod_is_placed() -> None:
    shards = [million.measure_shard((60, 40, 3, number)) for number in range(3)]
    assert (sum(shard.nodes for shard in shards), sum(shard.pods for shard in shards)) == (60, 40)
    assert all(shard.nodes and shard.pods and shard.cpu_s > 0 for shard in shards)


@pytest.mark.long
def test_shards_run_in_processes_of_their_own() -> None:
    lines: list[str] = []
    (cost,) = million.measure([Size(20, 10, 2, 1.0)], lines.append, processes=1)
    assert (len(cost.shards), sum(shard.pods for shard in cost.shards), len(lines)) == (2, 10, 2)


def test_the_slowest_shard_is_the_time_of_the_cluster() -> None:
    assert (COST.slowest_s, COST.kb_per_node) == (12.5, 20.0)
    assert COST.us_per_pod == pytest.approx(162.5)


def test_time_and_memory_have_targets_at_the_sizes_that_are_measured_by_default() -> None:
    assert [check.is_met for check in million.checks([COST])] == [True, True]
    large = ClusterCost(COST.nodes, COST.pods, [replace(SHARD, cpu_s=61.0, bytes_per_node=101_000.0)])
    assert [check.is_met for check in million.checks([large])] == [False, False]
    assert list(million.checks([replace(COST, pods=7)])) == []
    assert million.table([COST]).row_count == 1


def test_sizes_that_are_asked_for_have_as_many_pods_as_nodes() -> None:
    assert million.sizes(None, None) == SIZES
    assert [(size.nodes, size.pods, size.shards) for size in million.sizes([50, 200_000], None)] == [
        (50, 50, 1),
        (200_000, 200_000, 16),
    ]
