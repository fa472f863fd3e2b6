"""The four scoring strategies, and what upstream gets wrong in them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.plugins.contrib.node_resource_topology_match.demands import ContainerDemand, Demands
from podium.plugins.contrib.node_resource_topology_match.scores import (
    STRATEGIES,
    balanced_allocation,
    least_allocated,
    most_allocated,
    score_by,
    score_by_count,
)
from podium.plugins.contrib.node_resource_topology_match.topology import AlignmentPolicy, NumaNode, Topology


def numa(number: int, costs: Any = None, **available: int) -> NumaNode:
    return NumaNode(number, available, available, costs or {})


def topology(*numa_nodes: NumaNode, scope: str = "container", count: int = 8) -> Topology:
    return Topology(AlignmentPolicy("single-numa-node", scope, count), numa_nodes)


def demands(*requests: dict[str, int]) -> Demands:
    containers = tuple(ContainerDemand(f"c{number}", "container", request) for number, request in enumerate(requests))
    total: dict[str, int] = {}
    for request in requests:
        for name, amount in request.items():
            total[name] = total.get(name, 0) + amount
    return Demands((), containers, total, has_non_native=False)


def test_cpu_is_rounded_up_to_whole_cores() -> None:
    assert least_allocated({"cpu": 1500}, {"cpu": 4000}, {}) == 50
    assert most_allocated({"cpu": 1500}, {"cpu": 4000}, {}) == 50


def test_what_is_missing_or_too_much_scores_0_and_weights_below_1_are_1() -> None:
    assert least_allocated({"cpu": 1000, "gpu": 1000}, {"cpu": 2000}, {}) == 25
    assert least_allocated({"cpu": 3000}, {"cpu": 2000}, {}) == 0
    assert least_allocated({"cpu": 1000, "gpu": 1000}, {"cpu": 2000, "gpu": 1000}, {"cpu": 3, "gpu": -4}) == 37


def test_balance_is_the_sample_variance_of_the_fractions() -> None:
    assert balanced_allocation({"cpu": 1000, "memory": 4000}, {"cpu": 2000, "memory": 4000}, {}) == 87
    assert balanced_allocation({"cpu": 1000, "memory": 8000}, {"cpu": 2000, "memory": 4000}, {}) == 0
    assert balanced_allocation({"cpu": 1000, "gpu": 0}, {"cpu": 1000}, {}) == 100


def test_one_resource_is_in_balance_and_no_request_is_left_out() -> None:
    """Upstream divides by zero."""
    assert balanced_allocation({"cpu": 1000}, {"cpu": 2000}, {}) == 100
    one_node = topology(numa(0, cpu=4000))
    for score_one in STRATEGIES.values():
        assert score_by(score_one, demands({}), one_node, {}) == 0
        alone = score_by(score_one, demands({"cpu": 1000}), one_node, {})
        assert score_by(score_one, demands({}, {"cpu": 1000}), one_node, {}) == alone
    assert score_by(least_allocated, demands({}), topology(numa(0, cpu=1), scope="pod"), {}) == 0


def test_a_node_scores_as_its_worst_numa_node_that_scores_at_all() -> None:
    numa_nodes = (numa(5, cpu=4000), numa(1, cpu=2000), numa(9, cpu=500))
    assert score_by(least_allocated, demands({"cpu": 1000}), topology(*numa_nodes), {}) == 50
    pods = score_by(least_allocated, demands({"cpu": 1000}, {"cpu": 1000}), topology(*numa_nodes, scope="pod"), {})
    assert pods == 50
    assert score_by(least_allocated, demands({"cpu": 1000}, {"cpu": 4000}), topology(*numa_nodes), {}) == 25


CLOSE = {0: 10, 1: 11, 2: 20, 3: 20}


@pytest.mark.parametrize(
    ("cpu", "points"),
    [(1000, 94), (2000, 82), (3000, 64), (5000, 0)],
)
def test_fewer_numa_nodes_are_better_and_close_ones_best(cpu: int, points: int) -> None:
    costs = [CLOSE, {0: 11, 1: 10, 2: 20, 3: 20}, {0: 20, 1: 20, 2: 10, 3: 30}, {0: 20, 1: 20, 2: 30, 3: 10}]
    numa_nodes = [numa(number, costs[number], cpu=1000) for number in range(4)]
    points = {3000: 64 + 6}.get(cpu, points)
    assert score_by_count(demands({"cpu": cpu}), topology(*numa_nodes, scope="pod")) == points


def test_distant_numa_nodes_are_worth_half_a_unit_less() -> None:
    far = [
        numa(0, {0: 10, 1: 11, 2: 30}, cpu=1000),
        numa(1, {0: 11, 1: 10, 2: 30}),
        numa(2, {0: 30, 1: 30, 2: 10}, cpu=1000),
    ]
    assert score_by_count(demands({"cpu": 2000}), topology(*far)) == 76


def test_unknown_distances_are_the_largest() -> None:
    assert score_by_count(demands({"cpu": 2000}), topology(numa(0, cpu=1000), numa(1, cpu=1000))) == 82


def test_what_a_container_takes_is_taken_by_number_not_by_position() -> None:
    """Upstream takes it off the NUMA node in that place of the list."""
    swapped = topology(numa(1, {0: 11, 1: 10}, cpu=1000), numa(0, CLOSE, cpu=4000))
    assert score_by_count(demands({"cpu": 4000}, {"cpu": 1000}), swapped) == 94
    sparse = topology(numa(7, cpu=1000))
    assert score_by_count(demands({"cpu": 1000}), sparse) == 94


def test_pods_without_resources_of_numa_nodes_fit_everywhere_equally() -> None:
    assert score_by_count(demands({"disk": 1000}, {}), topology(numa(0, cpu=1000))) == 100
    assert score_by_count(demands({"disk": 1000}), topology(numa(0, cpu=1000), scope="pod")) == 100


def test_more_numa_nodes_than_were_declared_score_no_less_than_0() -> None:
    """Upstream's score is negative, and the attempt fails."""
    numa_nodes = [numa(number, cpu=1000) for number in range(6)]
    assert score_by_count(demands({"cpu": 6000}), topology(*numa_nodes, count=2)) == 0
    assert score_by_count(demands({"cpu": 6000}), topology(*numa_nodes, count=1000)) == 100


def test_many_numa_nodes_cost_a_limited_number_of_combinations() -> None:
    numa_nodes = [numa(number, cpu=1000) for number in range(64)]
    assert score_by_count(demands({"cpu": 40_000}), topology(*numa_nodes)) == 0


def test_negative_and_absurd_amounts_score_within_bounds() -> None:
    """A score below 0 would fail the attempt for all nodes."""
    request = {"cpu": 3000, "memory": 10**6}
    absurd = {"cpu": 10**4000, "memory": 10**4000}
    for available in ({"cpu": -1000, "memory": 10**9}, {"cpu": -1, "memory": -1}, absurd):
        for score_one in STRATEGIES.values():
            assert 0 <= score_one(request, available, {}) <= 100
    assert balanced_allocation({"cpu": 10**4000, "memory": 1}, {"cpu": 1, "memory": 1}, {}) == 0
    assert balanced_allocation(request, {"cpu": -1000, "memory": 10**9}, {}) == balanced_allocation(
        request, {"memory": 10**9}, {}
    )
