"""Which pods a pass plans: those that wait, and those of nodes that are leaving."""

from __future__ import annotations

from tests.unit.provisioner.clusters import managed_node, node_claim, node_pool, owned_by, plan, pod

LEAVING = {"deletionTimestamp": "2026-05-01T00:00:00Z"}


def test_nothing_is_planned_without_pods() -> None:
    assert plan() == {"ignored": {}}


def test_pods_that_kube_scheduler_has_not_refused_are_not_seen() -> None:
    gated_status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}
    assert plan(pod("a", status=gated_status), pod("b", status={"phase": "Pending"})) == {"ignored": {}}


def test_pods_that_are_refused_have_the_reason() -> None:
    answer = plan(pod("a", nodeSelector={"karpenter.sh/custom": "x"}))
    assert answer["ignored"]["default/a"].startswith("using label karpenter.sh/custom is not allowed")


def test_without_a_usable_pool_every_pod_has_that_reason() -> None:
    for pool in (node_pool(ready=False), node_pool(replicas=3)):
        assert plan(pod("a"), pool)["errors"] == {"default/a": "no dynamic nodepools found"}


def test_pods_of_a_node_that_leaves_are_placed_elsewhere() -> None:
    answer = plan(managed_node(), node_claim(**LEAVING), pod("a", node="node-1"))
    assert [claim["pods"] for claim in answer["claims"]] == [["default/a"]]


def test_pods_that_stay_on_a_leaving_node_are_not_placed() -> None:
    claim = node_claim(**LEAVING)
    protected = pod("a", node="node-1", metadata={"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
    daemon = pod("b", node="node-1", metadata=owned_by("DaemonSet", "agent"))
    assert plan(managed_node(), claim, protected, daemon) == {"ignored": {}}
