"""What Karpenter would disrupt, as it is told."""

from __future__ import annotations

from tests.unit.provisioner.clusters import pod
from tests.unit.provisioner.fleets import disruption_plan, machine, node_pool

KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def test_the_answer_has_every_part() -> None:
    answer = disruption_plan(
        machine("empty"),
        machine("busy", 8),
        machine("kept", annotations=KEEP),
        machine("other", 3),
        [pod("busy-1", node="busy"), pod("other-1", node="other")],
    )
    assert answer["conditions"] == {
        f"claim-{name}": {"consolidatable": True} for name in ("busy", "empty", "kept", "other")
    }
    assert answer["budgets"] == {"pool": {"Drifted": 4, "Empty": 4, "Underutilized": 4}}
    assert answer["blocked"] == {"kept": 'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation'}
    assert answer["unfit"] == {"other": 'Instance Type "c-3" not found'}
    assert answer["candidates"] == [{"node": "busy", "price": 0.8, "cost": 2.0}]
    assert answer["nodes"] == {"busy": {"decision": "delete", "replacements": [], "savings": 0.8}}
    assert answer["methods"]["emptiness"] == {
        "decision": "delete",
        "nodes": ["empty"],
        "replacements": [],
        "savings": 0.4,
    }
    assert answer["methods"]["single"] == {
        "decision": "delete",
        "nodes": ["busy"],
        "replacements": [],
        "savings": 0.8,
        "existing": {"empty": ["default/busy-1"]},
        "errors": {},
        "validation": None,
    }
    assert answer["methods"]["drift"] == answer["methods"]["multi"] == {"decision": "no-op"}


def test_a_node_that_stays_has_the_reason() -> None:
    answer = disruption_plan(machine("a"), pod("a-1", node="a", nodeSelector={"gpu": "yes"}))
    assert answer["nodes"]["a"]["reason"] == "Not all pods would schedule"
    assert list(answer["nodes"]["a"]["unschedulable"]) == ["default/a-1"]


def test_without_a_pool_to_buy_from_nodes_stay() -> None:
    answer = disruption_plan(machine("a"), pod("a-1", node="a"), node_pool(ready=False))
    assert answer["nodes"]["a"]["decision"] == "no-op"
    assert answer["methods"]["single"] == {"decision": "no-op"}
