"""Who is evicted on one node, and what budgets make of it."""

from __future__ import annotations

from typing import Any

from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import cluster, node, pod, quota


def budget(namespace: str, name: str = "keep", allowed: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_pods_whose_eviction_violates_a_budget_are_spared_first() -> None:
    world = cluster(
        node("n1"),
        quota("a", min={"cpu": "1"}),
        quota("b", min={"cpu": "2"}),
        budget("a"),
        pod("a/kept", "1", "n1", labels={"app": "keep"}),
        pod("a/gone", "1", "n1", priority=8),
        pod("a/more", "1", "n1", priority=9),
    )
    placement = world.place(pod("b/owner", "1"))
    assert {victim.key for victim in placement.victims} == {"a/gone"}


def test_a_victim_because_of_quotas_alone_is_no_violation() -> None:
    """So the node with the budget is as good as the other one, and the first by order wins, as upstream."""
    world = cluster(
        node("n1"),
        node("n2"),
        quota("a", min={"cpu": "1"}),
        quota("b", min={"cpu": "1"}),
        budget("a"),
        pod("a/kept", "1", "n1", labels={"app": "keep"}),
        pod("a/other", "1", "n2", priority=1),
    )
    placement = world.place(pod("b/owner", "1"))
    assert placement.nominated_node == "n1"
