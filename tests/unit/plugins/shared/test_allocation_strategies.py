from __future__ import annotations

from typing import Any

import pytest

from podium.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podium.objects.requests import scoring_requests
from podium.plugins.shared.allocation_strategies import MostAllocated, strategy_of
from tests.builders import node, pod, snapshot_of

GPU = "example.com/gpu"
CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))


def score(
    strategy: ScoringStrategy, requests: dict[str, Any], *, running_requests: dict[str, Any] | None = None, **shape: Any
) -> int:
    """The score of the only node, by both forms, with another pod on it that has taken some of it."""
    running_pods = [] if running_requests is None else [pod("there", node="n1", requests=running_requests)]
    snapshot = snapshot_of(node("n1", **shape), *running_pods)
    requests_scored = scoring_requests(pod(requests=requests).spec)
    (by_row,) = strategy_of(strategy).score_rows(requests_scored, snapshot, snapshot.order)
    assert strategy_of(strategy).score(requests_scored, snapshot.node(snapshot.order[0])) == by_row
    return int(by_row)


def ratio(*points: tuple[int, int], resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY) -> ScoringStrategy:
    shape = tuple(UtilizationShapePoint(utilization, value) for utilization, value in points)
    return ScoringStrategy(REQUESTED_TO_CAPACITY_RATIO, resources, RequestedToCapacityRatio(shape))


def test_least_allocated_scores_what_stays_free() -> None:
    least = ScoringStrategy(LEAST_ALLOCATED)
    # cpu (4000 - 3000) * 100 // 4000 = 25, memory (10000 - 5000) * 100 // 10000 = 50.
    assert score(least, {"cpu": "3", "memory": "5000"}, cpu="4", memory="10000") == 37
    assert score(least, {"cpu": "5", "memory": "5000"}, cpu="4", memory="10000") == 25


def test_most_allocated_scores_what_is_used_and_no_more_than_all() -> None:
    strategy = ScoringStrategy(MOST_ALLOCATED)
    assert score(strategy, {"cpu": "3", "memory": "5000"}, cpu="4", memory="10000") == 62
    assert score(strategy, {"cpu": "9", "memory": "5000"}, cpu="4", memory="10000") == 75


def test_weights_shift_the_mean() -> None:
    weighted_strategy = ScoringStrategy(MOST_ALLOCATED, (ResourceSpec("cpu", 3), ResourceSpec("memory", 1)))
    assert score(weighted_strategy, {"cpu": "3", "memory": "5000"}, cpu="4", memory="10000") == (3 * 75 + 50) // 4


def test_scalars_count_only_for_pods_that_request_them_and_nodes_that_have_them() -> None:
    with_gpu = ScoringStrategy(MOST_ALLOCATED, (ResourceSpec("cpu"), ResourceSpec(GPU, 3)))
    gpus = {GPU: "4"}
    assert score(with_gpu, {"cpu": "2"}, running_requests={GPU: 4}, cpu="4", allocatable=gpus) == 52
    assert score(with_gpu, {"cpu": "2", GPU: 1}, running_requests={"cpu": 1, GPU: 1}, cpu="4", allocatable=gpus) == 56
    assert score(with_gpu, {"cpu": "2", GPU: 1}, cpu="4") == 50


def test_a_node_without_any_of_the_resources_scores_0() -> None:
    only_gpu = (ResourceSpec(GPU),)
    assert score(ScoringStrategy(LEAST_ALLOCATED, only_gpu), {GPU: 1}) == 0
    assert score(ScoringStrategy(LEAST_ALLOCATED, only_gpu), {}) == 0
    assert score(ratio((0, 10), (100, 0), resources=only_gpu), {GPU: 1}) == 0


@pytest.mark.parametrize(
    ("percent", "points"),
    [(0, 20), (10, 20), (20, 20), (30, 46), (50, 100), (51, 99), (75, 65), (99, 32), (100, 30), (150, 30)],
)
def test_the_ratio_follows_its_shape_and_truncates_on_the_way_up_and_down(percent: int, points: int) -> None:
    only_cpu = ratio((20, 2), (50, 10), (100, 3), resources=(ResourceSpec("cpu"),))
    assert score(only_cpu, {"cpu": f"{percent * 10}m"}, cpu="1") == points


def test_the_ratios_mean_is_rounded_and_leaves_zeros_out() -> None:
    rising = ratio((0, 0), (100, 10))
    # cpu 50, memory 51: 50.5 rounds up.
    assert score(rising, {"cpu": "500m", "memory": "510"}, cpu="1", memory="1000") == 51
    assert score(rising, {"cpu": "500m", "memory": "0"}, cpu="1", memory="1000") == 50
    assert score(rising, {"cpu": "0", "memory": "0"}, cpu="1", memory="1000") == 0


def test_nodes_that_offer_different_resources_are_scored_side_by_side() -> None:
    strategy = strategy_of(ScoringStrategy(MOST_ALLOCATED, (ResourceSpec("cpu"), ResourceSpec(GPU))))
    snapshot = snapshot_of(node("plain", cpu="2"), node("gpu", cpu="2", allocatable={GPU: "4"}))
    requests_scored = scoring_requests(pod(requests={"cpu": "1", GPU: 4}).spec)
    scores = strategy.score_rows(requests_scored, snapshot, snapshot.order).tolist()
    assert dict(zip(map(snapshot.name, snapshot.order), scores, strict=True)) == {"plain": 50, "gpu": 75}


def test_nodes_together_are_scored_as_one_node_that_is_as_big() -> None:
    strategy = MostAllocated(ScoringStrategy(MOST_ALLOCATED, (ResourceSpec("cpu"), ResourceSpec(GPU))))
    running_pod = pod("there", node="gpu", requests={"cpu": "1", GPU: 1})
    snapshot = snapshot_of(node("plain", cpu="2"), node("gpu", cpu="2", allocatable={GPU: "4"}), running_pod)
    # cpu: 1 of 4 and 1 more; GPUs: 1 of 4 and 2 more.
    assert strategy.score_together({"cpu": 1000, GPU: 2}, snapshot, snapshot.order) == (50 + 75) // 2
    assert strategy.score_together({"cpu": 1000}, snapshot, snapshot.order) == 50
    assert strategy.score_together({"cpu": 1000}, snapshot, snapshot.order[:0]) == 0
