"""The nodes that may be disrupted, and what blocks the others."""

from __future__ import annotations

from typing import Any

import pytest

from podium.objects.times import format_time
from podium.provisioner.disruption.disruption_state import DisruptionState
from tests.unit.provisioner.clusters import CAPACITY_TYPE, NOW, ZONE, Document, node, owned_by, pod
from tests.unit.provisioner.fleets import INSTANCE_TYPE, candidate_names, machine, node_pool, state_of

KEEP = {"karpenter.sh/do-not-disrupt": "true"}
TOLERATION = {"key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule"}


def budget(name: str = "web", *, disruptions: int = 0, **spec: Any) -> Document:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": {"disruptionsAllowed": disruptions},
    }


def web(name: str = "web-1", **fields: Any) -> Document:
    return pod(name, node="a", labels={"app": "web"}, **fields)


def blocker_texts(state: DisruptionState) -> dict[str, list[str]]:
    return {name: [blocker.text for blocker in blockers] for name, blockers in state.blockers().items()}


# ---------------------------------------------------------------- what blocks a node


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (machine("a", stage="registered"), "Node isn't initialized"),
        (
            machine("a", claim={"deletionTimestamp": "2026-05-01T00:00:00Z"}),
            "Node is deleting or marked for deletion",
        ),
        (machine("a", conditions={"InstanceTerminating": "Gone"}), "Node is deleting or marked for deletion"),
        (machine("a", conditions={"Rebooting": "Repair"}), "Node is rebooting"),
        (
            machine("a", annotations=KEEP),
            'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        ),
        (machine("a", pool="other"), "NodePool not found (NodePool=other)"),
    ],
)
def test_a_blocked_node_has_the_reason(parts: list[Document], text: str) -> None:
    state = state_of(parts)
    assert blocker_texts(state) == {"a": [text]}
    assert candidate_names(state) == []


def test_a_claim_without_a_node_goes_by_its_own_name() -> None:
    assert blocker_texts(state_of(machine("a", stage="claimed"))) == {
        "claim-a": ["Nodeclaim does not have an associated node"]
    }


def test_nodes_that_are_not_managed_are_no_candidates_and_have_no_reason() -> None:
    state = state_of(node("plain"))
    assert (candidate_names(state), blocker_texts(state)) == ([], {})


@pytest.mark.parametrize("value", ["false", "1h"])
def test_only_true_keeps_a_node(value: str) -> None:
    assert candidate_names(state_of(machine("a", annotations={"karpenter.sh/do-not-disrupt": value}))) == ["a"]


def test_blockers_of_a_node_come_in_karpenters_order() -> None:
    node_ = machine("a", stage="registered", annotations=KEEP, pool="other")
    pods = [web("z", metadata={"annotations": KEEP}), web("b"), web("c", metadata={"annotations": KEEP})]
    texts = blocker_texts(state_of(node_, pods, budget(), node_pool()))["a"]
    assert texts == [
        "Node isn't initialized",
        'Disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        "NodePool not found (NodePool=other)",
        'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/c)',
        'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=default/z)',
        "Pdb prevents pod evictions (PodDisruptionBudget=[default/web])",
    ]


@pytest.mark.parametrize(
    ("pod_fields", "blocks"),
    [
        ({}, True),
        (owned_by("DaemonSet", "agent"), True),
        (owned_by("Node", "a", "v1"), True),
        ({"deletionTimestamp": "2026-05-01T00:00:00Z"}, False),
    ],
)
def test_any_active_pod_may_block_by_its_annotation(pod_fields: Document, blocks: bool) -> None:
    keeps = web(metadata={"annotations": KEEP, **pod_fields})
    assert bool(blocker_texts(state_of(machine("a"), keeps))) is blocks


def test_a_pods_annotation_may_hold_for_a_time() -> None:
    def pod_since(seconds_ago: float) -> Document:
        status = {"phase": "Running", "startTime": format_time(NOW - seconds_ago)}
        return web(metadata={"annotations": {"karpenter.sh/do-not-disrupt": "10m"}}, status=status)

    assert candidate_names(state_of(machine("a"), pod_since(599))) == []
    assert candidate_names(state_of(machine("a"), pod_since(600))) == ["a"]


@pytest.mark.parametrize(
    ("pod_fields", "blocks"),
    [
        ({}, True),
        ({"tolerations": [TOLERATION]}, False),
        ({"metadata": owned_by("DaemonSet", "agent")}, True),
        ({"metadata": owned_by("Node", "a", "v1")}, False),
    ],
)
def test_budgets_are_asked_of_every_pod_that_is_evicted(pod_fields: Document, blocks: bool) -> None:
    assert bool(blocker_texts(state_of(machine("a"), web(**pod_fields), budget()))) is blocks


def test_a_budget_that_allows_a_disruption_does_not_block() -> None:
    assert candidate_names(state_of(machine("a"), web(), budget(disruptions=1))) == ["a"]


def test_a_pod_that_is_not_ready_may_go_if_its_budget_says_so() -> None:
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    lenient = budget(unhealthyPodEvictionPolicy="AlwaysAllow")
    assert candidate_names(state_of(machine("a"), web(status=unready), lenient)) == ["a"]


def test_two_budgets_of_one_pod_block_whatever_they_allow() -> None:
    texts = blocker_texts(state_of(machine("a"), web(), budget("one", disruptions=1), budget("two", disruptions=1)))
    text = "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/one default/two])"
    assert texts == {"a": [text]}


def test_drift_with_a_grace_period_overrides_pods_but_not_the_node() -> None:
    bounded = {"claim_spec": {"terminationGracePeriod": "1h"}, "conditions": {"Drifted": "NodePoolDrifted"}}
    spot = node_pool(requirements=[{"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}])
    state = state_of(machine("a", **bounded), web(), budget(), spot)
    assert [candidate.name for candidate in state.drift_candidates] == ["a"]
    assert candidate_names(state) == []
    unbounded = state_of(machine("a", conditions={"Drifted": "NodePoolDrifted"}), web(), budget(), spot)
    assert unbounded.drift_candidates == ()
    assert state_of(machine("a", annotations=KEEP, **bounded), spot).drift_candidates == ()


# ---------------------------------------------------------------- what a candidate is


def test_a_candidate_is_worth_its_price_for_what_its_pods_cost() -> None:
    state = state_of(machine("a", 4), [web("one"), web("two")], web("agent", metadata=owned_by("DaemonSet", "agent")))
    candidate = state.candidates[0]
    assert (candidate.price, candidate.cost, candidate.savings_ratio) == (0.4, 3.0, pytest.approx(0.4 / 3))


def test_a_node_without_an_offering_costs_nothing() -> None:
    assert state_of(machine("a", zone="zone-9")).candidates[0].price == 0


def test_a_node_whose_pods_cost_nothing_is_empty() -> None:
    free = {"annotations": {"karpenter.sh/disruption-cost": str(-(2**30))}}
    state = state_of(machine("a"), web(metadata=free), machine("b"), pod("b-1", node="b"))
    assert [candidate.is_empty for candidate in state.candidates] == [True, False]
    assert [candidate.name for candidate in state.candidates if candidate.goes_when_empty] == ["a"]
    assert [candidate.name for candidate in state.consolidatable] == ["b"]


@pytest.mark.parametrize(
    ("parts", "pool", "text"),
    [
        (machine("a", 3), {}, 'Instance Type "c-3" not found'),
        (machine("a"), {"consolidate_after": "Never"}, 'NodePool "pool" has consolidation disabled'),
        (
            machine("a"),
            {"policy": "WhenEmpty"},
            'NodePool "pool" has consolidation policy WhenEmpty, but node is not empty',
        ),
        (machine("a"), {"replicas": 1}, None),
    ],
)
def test_a_candidate_that_is_not_consolidated_has_the_reason(
    parts: list[Document], pool: dict[str, Any], text: str | None
) -> None:
    state = state_of(parts, web(), node_pool(**pool))
    assert state.candidates[0].unfitness == text
    assert state.consolidatable == ()


@pytest.mark.parametrize("label", [CAPACITY_TYPE, ZONE])
def test_without_its_labels_a_nodes_price_is_not_known(label: str) -> None:
    parts = machine("a")
    del parts[1]["metadata"]["labels"][label]
    assert state_of(parts, web()).candidates[0].unfitness == f'Node does not have label "{label}"'


def test_a_node_goes_by_its_own_label_and_not_by_its_claims() -> None:
    parts = machine("a", pool="other")
    parts[1]["metadata"]["labels"].update({"karpenter.sh/nodepool": "pool", INSTANCE_TYPE: "c-8"})
    candidate = state_of(parts).candidates[0]
    assert (candidate.pool_name, candidate.price) == ("pool", pytest.approx(0.8))


def test_a_node_under_consolidate_after_has_no_reason() -> None:
    state = state_of(machine("a", pod_event_s_ago=10), web(), node_pool(consolidate_after="1m"))
    assert (state.candidates[0].unfitness, state.consolidatable) == (None, ())
