"""The order and the batches in which nodes are drained."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.errors import ClusterError
from podium.insight import Cluster
from podium.insight.room.drain_order import DrainOrder, drain_order
from tests.manifests import Json, node, nodes
from tests.unit.insight.room.test_make_room import running
from tests.workload_manifests import budget, workload


def order_of(*objects: Json, names: tuple[str, ...]) -> DrainOrder:
    return drain_order(Cluster.load(list(objects)), names)


def batches_of(order: DrainOrder) -> list[tuple[str, ...]]:
    return [batch.nodes for batch in order.batches]


def replica_set(name: str, replicas: int) -> Json:
    item = workload("ReplicaSet", name, replicas)
    item["metadata"]["uid"] = f"ReplicaSet/default/{name}"
    return item


def test_nodes_are_drained_together_where_no_budget_minds() -> None:
    pods = [running("web-0", "1", "node-0"), running("web-1", "1", "node-1")]
    order = order_of(*nodes(3, cpu="4"), replica_set("web", 2), *pods, names=("node-0", "node-1"))
    assert batches_of(order) == [("node-0", "node-1")]
    assert [move.target for move in order.batches[0].moves] == ["node-2", "node-2"]
    assert order.blockers == ()


def test_a_budget_makes_batches() -> None:
    pods = [running(f"web-{number}", "1", f"node-{number}") for number in range(3)]
    objects: list[Any] = [*nodes(5, cpu="4"), replica_set("web", 3), *pods, budget({"app": "web"}, maxUnavailable=2)]
    order = order_of(*objects, names=("node-0", "node-1", "node-2"))
    assert batches_of(order) == [("node-0", "node-1"), ("node-2",)]
    targets = [move.target for batch in order.batches for move in batch.moves]
    assert set(targets) <= {"node-3", "node-4"}


def test_a_node_with_more_pods_of_a_budget_than_may_go_at_once_is_drained_in_rounds() -> None:
    pods = [running(f"web-{number}", "1", "node-0") for number in range(2)]
    objects = [*nodes(2, cpu="4"), replica_set("web", 2), *pods, budget({"app": "web"}, maxUnavailable=1)]
    order = order_of(*objects, names=("node-0",))
    assert [(batch.nodes, batch.rounds) for batch in order.batches] == [(("node-0",), 2)]


def test_a_budget_that_never_lets_a_pod_go_is_named_with_its_fix() -> None:
    objects = [
        *nodes(3),
        replica_set("web", 1),
        running("web-0", "1", "node-0"),
        budget({"app": "web"}, minAvailable=1),
    ]
    order = order_of(*objects, names=("node-0", "node-1"))
    assert batches_of(order) == [("node-1",)]
    assert [blocker.as_dict() for blocker in order.blockers] == [
        {
            "node": "node-0",
            "pod": "default/web-0",
            "why": "PodDisruptionBudget default/budget never lets it go",
            "fix": "lower minAvailable of budget from 1 to 0, or give its workload another replica",
        }
    ]


def test_a_second_budget_is_named_with_its_fix() -> None:
    budgets = [budget({"app": "web"}, name, maxUnavailable=1) for name in ("first", "second")]
    order = order_of(*nodes(2), replica_set("web", 1), running("web-0", "1", "node-0"), *budgets, names=("node-0",))
    (blocker,) = order.blockers
    assert blocker.reason.endswith("several PodDisruptionBudgets: default/first, default/second")
    assert blocker.fix == "let one budget select the pod"


def test_a_replacement_that_would_preempt_another_pod_blocks() -> None:
    important = running("web-0", "3", "n1", priority=5)
    order = order_of(node("n1", "4"), node("n2", "4"), important, running("api-0", "2", "n2"), names=("n1",))
    assert order.batches == ()
    (blocker,) = [blocker for blocker in order.blockers if "preempt" in blocker.reason]
    assert (blocker.pod, blocker.node) == ("default/api-0", "n2")
    assert blocker.fix == "add a node, or drain fewer nodes"


def test_no_pod_moves_twice_and_the_nodes_stay_cordoned() -> None:
    # Without the cordons the emptiest node would be the next one to be drained.
    pods = [running(f"web-{number}", "1", f"node-{number}") for number in range(3)]
    busy = running("api-0", "3", "node-3")
    objects: list[Json] = [*nodes(4, cpu="8"), replica_set("web", 3), *pods, busy]
    order = order_of(*objects, budget({"app": "web"}, maxUnavailable=1), names=("node-0", "node-1", "node-2"))
    moves = [(move.pod, move.target) for batch in order.batches for move in batch.moves]
    assert moves == [(f"default/web-{number}", "node-3") for number in range(3)]


def test_a_pod_without_another_node_blocks() -> None:
    objects = [node("n1", "4"), node("n2", "1"), running("web-0", "3", "n1")]
    order = order_of(*objects, names=("n1",))
    assert order.batches == ()
    assert "its replacement would be pending: 0/2 nodes are available" in order.blockers[0].reason
    assert order.blockers[0].fix == "lower the request for cpu from 3 to 1"


def test_a_replacement_that_tolerates_the_cordon_of_a_later_node_blocks() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    item = running("web-0", "1", "node-0", tolerations=[toleration], nodeSelector={"kubernetes.io/hostname": "node-1"})
    order = order_of(*nodes(2), item, names=("node-0", "node-1"))
    assert "tolerates the cordon of node-1" in order.blockers[0].reason


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(ClusterError, match="there is no node node-9"):
        order_of(*nodes(2), names=("node-9",))
