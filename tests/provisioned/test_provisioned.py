"""A few of the cases that `python -m tests.provisioned` tries."""

from __future__ import annotations

import pytest

from tests.provisioned.consolidations import check_consolidation
from tests.provisioned.plans import check_plan

# 16: a node is needed only until another one is left out.
# 162: what keeps a pod that runs from being preempted.
# 5005: a pod is placed, and preempted by one that is nominated to the same node.
# 5035: a pod finds no place beside victims that are still there.
KEPT = (1, 4, 5, 16, 162, 5005, 5035)


@pytest.mark.parametrize("seed", KEPT)
def test_podium_binds_just_the_pods_of_the_plan_and_needs_each_of_its_nodes(seed: int) -> None:
    assert check_plan(seed).faults == []


# 5023: a pod that waits is placed before those of the nodes that go.
# 5173: pods of DaemonSets take room on a node of an earlier command.
# 5181: a node that goes counts until its pods are placed.
# 7181: a pod that waits is placed on a node that goes later.
# 7229: a PodDisruptionBudget holds a node until a pod of it is placed that fits only once the node is gone.
@pytest.mark.parametrize("seed", [2, 3, 5, 6, 8, 5023, 5173, 5181, 7181, 7229])
def test_a_consolidation_that_is_carried_out_keeps_every_pod_and_saves_what_it_promised(seed: int) -> None:
    checked = check_consolidation(seed)
    assert checked.faults == []
    assert checked.removals
