"""Questions about which nodes may go: policies, what makes a candidate, what blocks one, and budgets.

Source: karpenter pkg/controllers/disruption/*_test.go and nodeclaim/disruption/*_test.go (scenarios only), v1.15.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.parity.karpenter.consolidation import TYPE, about, changed_pool, running
from tests.parity.karpenter.questions import (
    Question,
    disruption_budget,
    gates,
)
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    Document,
    node,
    owned_by,
)
from tests.unit.provisioner.fleets import NODE_POOL, ago, machine, node_pool


def questions() -> Iterator[Question]:
    """All questions of this module."""
    yield from _policies()
    yield from _candidates()
    yield from _blockers()
    yield from _budgets()


def _policies() -> Iterator[Question]:
    node_parts = [machine("one", 8), running("web", "one")]
    for policy in ("WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced"):
        yield about("policies", f"A node with a pod: {policy}", node_parts, node_pool(policy=policy))
        yield about("policies", f"An empty node: {policy}", machine("one", 8), node_pool(policy=policy))
    yield about("policies", "Consolidation is switched off", node_parts, node_pool(consolidate_after="Never"))
    yield about(
        "policies",
        "Consolidation is switched off, and a node is empty",
        machine("one"),
        node_pool(consolidate_after="Never"),
    )
    for seconds in (30, 90):
        yield about(
            "policies",
            f"consolidateAfter is a minute, and a pod came {seconds} s ago",
            machine("one", 8, pod_event_s_ago=seconds),
            running("web", "one"),
            node_pool(consolidate_after="1m"),
        )
        yield about(
            "policies",
            f"consolidateAfter is a minute, and a node came {seconds} s ago",
            machine("one", 8, created_s_ago=seconds),
            running("web", "one"),
            node_pool(consolidate_after="1m"),
        )
    for stage in ("claimed", "registered", "initialized"):
        yield about("policies", f"A node on its way: {stage}", machine("one", 8, stage=stage))
    static = node_pool("still", replicas=1)
    yield about(
        "policies",
        "A NodePool of a fixed size",
        machine("one", 8, pool="still"),
        running("web", "one"),
        machine("two", 4, pool="still"),
        static,
        **gates(StaticCapacity=True),
    )
    yield about(
        "policies",
        "A NodePool of a fixed size beside another",
        machine("one", 8, pool="still"),
        running("web", "one"),
        machine("two", 8),
        running("shop", "two"),
        static,
        node_pool(),
        **gates(StaticCapacity=True),
    )


def _without(label: str) -> list[Document]:
    documents = machine("one", 8)
    for document in documents:
        document["metadata"]["labels"].pop(label, None)
    return documents


def _candidates() -> Iterator[Question]:
    for label in (CAPACITY_TYPE, "topology.kubernetes.io/zone", TYPE, NODE_POOL):
        yield about("candidates", f"A node without the label {label}", _without(label), running("web", "one"))
    renamed = machine("one", 8, **{TYPE: "none"})
    yield about("candidates", "A node of an instance type that is not there", renamed, running("web", "one"))
    yield about(
        "candidates", "A node of a NodePool that is not there", machine("one", 8, pool="gone"), running("web", "one")
    )
    yield about("candidates", "A node of nobody", node("own"), running("web", "own"))
    yield about(
        "candidates",
        "A node that is being deleted",
        machine("one", 8, claim={"deletionTimestamp": ago(5), "finalizers": ["karpenter.sh/termination"]}),
        running("web", "one"),
    )
    yield about(
        "candidates",
        "A node that is not ready",
        machine("one", 8, ready=False),
        running("web", "one"),
        machine("two", 8),
        running("shop", "two"),
    )
    for key, values in {
        "karpenter.sh/disruption-cost": ("1000000", "-2000000000", "x"),
        "controller.kubernetes.io/pod-deletion-cost": ("1000000", "-2000000000"),
    }.items():
        for value in values:
            web = running("web", "one", metadata={"annotations": {key: value}})
            yield about("costs", f"A pod with {key}: {value}", machine("one", 8), web)
    annotations = {"karpenter.sh/disruption-cost": "5000", "controller.kubernetes.io/pod-deletion-cost": "900000000"}
    yield about(
        "costs", "A pod with both", machine("one", 8), running("web", "one", metadata={"annotations": annotations})
    )
    deletion = {"controller.kubernetes.io/pod-deletion-cost": "900000000"}
    yield about(
        "costs",
        "A pod with a deletion cost that Karpenter sets itself",
        machine("one", 8),
        running("web", "one", metadata={"annotations": deletion}),
        **gates(PodDeletionCostManagement=True),
    )
    for priority in (1_000_000, -1_000_000):
        yield about(
            "costs", f"A pod of priority {priority}", machine("one", 8), running("web", "one", priority=priority)
        )


def _blockers() -> Iterator[Question]:
    key = "karpenter.sh/do-not-disrupt"
    for value in ("true", "false"):
        yield about(
            "blocked", f"A node with {key}: {value}", machine("one", 8, annotations={key: value}), running("web", "one")
        )
    running_status = {"phase": "Running", "startTime": ago(600)}
    for value in ("true", "false", "5m", "30m", "soon", "-1m"):
        web = running("web", "one", metadata={"annotations": {key: value}}, status=running_status)
        yield about("blocked", f"A pod with {key}: {value}", machine("one", 8), web)
    protection = {"annotations": {key: "true"}}
    yield about(
        "blocked",
        "A pod that has ended does not count",
        machine("one", 8),
        running("web", "one", metadata=protection, status={"phase": "Succeeded"}),
    )
    ending = {
        **protection,
        "deletionTimestamp": ago(5),
        "deletionGracePeriodSeconds": 30,
        "finalizers": ["example.com/stay"],
    }
    yield about(
        "blocked", "A pod that is ending does not count", machine("one", 8), running("web", "one", metadata=ending)
    )
    yield about(
        "blocked",
        "A pod of a DaemonSet counts",
        machine("one", 8),
        running("web", "one", metadata={**owned_by("DaemonSet", "agent"), **protection}),
    )
    yield about(
        "blocked",
        "A mirror pod counts",
        machine("one", 8),
        running("web", "one", metadata={**owned_by("Node", "one", "v1"), **protection}),
    )
    drifted = {"Drifted": "NodePoolDrifted"}
    bounded = {"terminationGracePeriod": "1h"}
    hashes = {"annotations": {"karpenter.sh/nodepool-hash": "old", "karpenter.sh/nodepool-hash-version": "v3"}}
    for name, fields in (("without", {}), ("with", {"claim_spec": bounded})):
        yield about(
            "blocked",
            f"A drifted node {name} a limit for its draining",
            machine("one", 8, conditions=drifted, claim=hashes, **fields),
            running("web", "one", metadata=protection),
            changed_pool(),
        )
        yield about(
            "blocked",
            f"A drifted node under a budget {name} a limit for its draining",
            machine("one", 8, conditions=drifted, claim=hashes, **fields),
            running("web", "one"),
            disruption_budget(),
            changed_pool(),
        )
    yield about("blocked", "A budget that is used up", machine("one", 8), running("web", "one"), disruption_budget())
    yield about(
        "blocked",
        "A budget that allows one",
        machine("one", 8),
        running("web", "one"),
        disruption_budget(disruptions=1),
    )
    yield about(
        "blocked",
        "A budget of another namespace",
        machine("one", 8),
        running("web", "one"),
        disruption_budget(namespace="other"),
    )
    yield about(
        "blocked",
        "Two budgets over one pod",
        machine("one", 8),
        running("web", "one"),
        disruption_budget("a", disruptions=1),
        disruption_budget("b", disruptions=1),
    )
    for policy in ("AlwaysAllow", "IfHealthyBudget"):
        sick = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
        yield about(
            "blocked",
            f"A budget over a pod that is not ready: {policy}",
            machine("one", 8),
            running("web", "one", status=sick),
            disruption_budget(unhealthyPodEvictionPolicy=policy),
        )
    yield about(
        "blocked",
        "A budget over a mirror pod",
        machine("one", 8),
        running("web", "one", metadata=owned_by("Node", "one", "v1")),
        disruption_budget(),
    )
    yield about(
        "blocked",
        "A budget over a DaemonSet's pod",
        machine("one", 8),
        running("web", "one", metadata=owned_by("DaemonSet", "agent")),
        disruption_budget(),
    )
    yield about(
        "blocked",
        "A budget over a pod that is ending",
        machine("one", 8),
        running("web", "one", metadata={k: v for k, v in ending.items() if k != "annotations"}),
        disruption_budget(),
    )


def _budgets() -> Iterator[Question]:
    empty = [document for index in range(5) for document in machine(f"n{index}", 4)]
    used_nodes = [*empty, *(running(f"web-{index}", f"n{index}", "100m") for index in range(5))]
    for nodes in ("0", "3", "30%", "100%", "0%"):
        yield about("budgets", f"Of five empty nodes {nodes} may go", empty, node_pool(nodes=nodes))
        yield about("budgets", f"Of five used nodes {nodes} may go", used_nodes, node_pool(nodes=nodes))
    split = [{"nodes": "1", "reasons": ["Empty"]}, {"nodes": "2", "reasons": ["Underutilized"]}, {"nodes": "4"}]
    yield about("budgets", "A budget for each reason", [*used_nodes, *machine("free", 2)], node_pool(budgets=split))
    two = [
        document for pool in ("a", "b") for index in range(3) for document in machine(f"{pool}{index}", 4, pool=pool)
    ]
    yield about(
        "budgets",
        "Two NodePools of which two nodes each may go",
        two,
        node_pool("a", nodes="2"),
        node_pool("b", nodes="2"),
    )
    yield about(
        "budgets", "Two NodePools of which one holds all", two, node_pool("a", nodes="0"), node_pool("b", nodes="100%")
    )
    for schedule, duration in (("0 0 * * *", "23h"), ("0 0 1 1 *", "1h"), ("@daily", "24h")):
        yield about(
            "budgets",
            f"A budget at times: {schedule} for {duration}",
            empty,
            node_pool(budgets=[{"nodes": "0", "schedule": schedule, "duration": duration}]),
        )
    terminating = machine(
        "gone",
        4,
        conditions={"InstanceTerminating": "x"},
        claim={"deletionTimestamp": ago(5), "finalizers": ["karpenter.sh/termination"]},
    )
    yield about("budgets", "A node whose instance ends counts no more", empty, terminating, node_pool(nodes="50%"))
    leaving = machine("gone", 4, claim={"deletionTimestamp": ago(5), "finalizers": ["karpenter.sh/termination"]})
    yield about("budgets", "A node that leaves uses up the budget", empty, leaving, node_pool(nodes="2"))
    yield about(
        "budgets",
        "A node that is not ready uses up the budget",
        empty,
        machine("sick", 4, ready=False),
        node_pool(nodes="2"),
    )
    yield about(
        "budgets",
        "A node that is not initialized does not count",
        empty[:2],
        machine("new", 4, stage="registered"),
        node_pool(nodes="50%"),
    )
