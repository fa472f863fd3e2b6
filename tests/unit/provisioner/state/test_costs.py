"""What it costs to evict pods."""

from __future__ import annotations

import pytest

from podium.provisioner.state.costs import eviction_cost, removal_cost, sum_in_order
from tests.unit.provisioner.clusters import as_pod, pod

OWN = "karpenter.sh/disruption-cost"
REPLICA_SET = "controller.kubernetes.io/pod-deletion-cost"
UNIT = 2**27


@pytest.mark.parametrize(
    ("annotations", "priority", "cost"),
    [
        ({}, None, 1),
        ({OWN: str(UNIT)}, None, 2),
        ({OWN: f"-{2 * UNIT}"}, None, -1),
        ({REPLICA_SET: str(UNIT)}, None, 2),
        ({OWN: "soon", REPLICA_SET: str(UNIT)}, None, 1),
        ({OWN: str(2**31)}, None, 1),
        ({}, 2**25, 2),
        ({OWN: str(UNIT)}, 2**25, 3),
        ({}, 2_000_000_000, 10),
        ({}, -2_000_000_000, -10),
    ],
)
def test_annotations_and_priority_change_what_a_pod_costs(
    annotations: dict[str, str], priority: int | None, cost: float
) -> None:
    subject = as_pod(pod("a", metadata={"annotations": annotations}, priority=priority))
    assert eviction_cost(subject) == cost


def test_the_cost_for_a_replica_set_can_be_left_out() -> None:
    assert (
        eviction_cost(as_pod(pod("a", metadata={"annotations": {REPLICA_SET: "99"}})), reads_deletion_cost=False) == 1
    )


def test_a_pod_with_a_negative_cost_does_not_make_its_node_cheaper() -> None:
    cheap = as_pod(pod("a", metadata={"annotations": {OWN: f"-{2 * UNIT}"}}))
    assert removal_cost([]) == 1
    assert removal_cost([cheap]) == 1
    assert removal_cost([cheap, as_pod(pod("b"))]) == 2


def test_prices_are_added_one_after_another() -> None:
    assert sum_in_order([0.1, 0.2, 0.3]) == 0.1 + 0.2 + 0.3
