"""A cluster at a time, as the methods of disruption see it."""

from __future__ import annotations

from tests.unit.provisioner.clusters import managed_node, pod
from tests.unit.provisioner.fleets import machine, node_pool, state_of

HALF = node_pool(nodes="50%")


def test_budgets_count_the_nodes_of_the_pool_that_are_up() -> None:
    state = state_of(
        [part for name in "abc" for part in machine(name)],
        machine("coming", stage="registered"),
        machine("ended", conditions={"InstanceTerminating": "Gone"}),
        HALF,
    )
    assert state.budgets("Empty") == {"pool": 2}, "half of three, rounded up"


def test_nodes_that_are_not_ready_or_leaving_use_the_budget_up() -> None:
    deletion = {"deletionTimestamp": "2026-05-01T00:00:00Z"}
    nodes = [part for name in "abcd" for part in machine(name)]
    unready, leaving = machine("e", ready=False), machine("f", claim=deletion)
    assert state_of(nodes, HALF).budgets("Drifted") == {"pool": 2}
    assert state_of(nodes, unready, leaving, HALF).budgets("Drifted") == {"pool": 1}
    assert state_of(nodes, unready, leaving, HALF).budgets("Unhealthy") == {"pool": 2}


def test_a_node_counts_for_the_pool_of_its_own_label() -> None:
    relabelled_machine = machine("a", pool="pool")
    relabelled_machine[1]["metadata"]["labels"]["karpenter.sh/nodepool"] = "other"
    state = state_of(relabelled_machine, node_pool(nodes="100%"), node_pool("other", nodes="100%"))
    assert state.budgets("Empty") == {"pool": 0, "other": 1}


def test_nodes_without_a_claim_do_not_count() -> None:
    assert state_of(managed_node("plain", machine="kwok://plain"), HALF).budgets("Empty") == {"pool": 0}


def test_a_budget_of_a_reason_binds_only_that_reason() -> None:
    pool = node_pool(budgets=[{"nodes": "100%"}, {"nodes": "0", "reasons": ["Drifted"]}])
    state = state_of(machine("a"), pool)
    assert (state.budgets("Drifted"), state.budgets("Empty")) == ({"pool": 0}, {"pool": 1})


def test_a_budget_that_cannot_be_read_allows_nothing() -> None:
    assert state_of(machine("a"), node_pool(nodes="many")).budgets("Empty") == {"pool": 0}


def test_a_schedule_is_compared_with_the_time_of_the_state() -> None:
    # Now is 20:26:40 UTC.
    pool = node_pool(budgets=[{"nodes": "0", "schedule": "27 20 * * *", "duration": "1h"}, {"nodes": "100%"}])
    state = state_of(machine("a"), pool)
    assert state.budgets("Empty") == {"pool": 1}
    assert state.later(20).budgets("Empty") == {"pool": 0}


def test_the_best_savings_come_first_and_equal_ones_by_name() -> None:
    state = state_of(
        machine("d", 4), machine("a", 4), machine("b", 8), machine("c", 4), [pod(f"{n}-1", node=n) for n in "abcd"],
        pod("c-2", node="c"),
    )  # fmt: skip
    assert [candidate.name for candidate in state.consolidatable] == ["b", "a", "d", "c"]


def test_conditions_of_now_hold_later_too() -> None:
    state = state_of(machine("a", pod_event_s_ago=50), pod("a-1", node="a"), node_pool(consolidate_after="1m"))
    assert state.later(20).consolidatable == ()
