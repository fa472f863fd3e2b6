from random import Random

import pytest

from tests.unit.estimator.division.fleets import AGGREGATED, DUPLICATED, DYNAMIC, binding, cluster, divide_into, static

AGAIN = {"status": {"lastScheduledTime": "2026-01-01T00:00:00Z"}}
NOT_ENOUGH = "Clusters available replicas {} are not enough to schedule."


@pytest.mark.parametrize(
    ("spec", "available", "shares"),
    [
        (binding(3, DUPLICATED), {"a": 9, "b": 0}, {"a": 3, "b": 3}),
        (binding(9, static(a=1, b=2)), {"a": 0, "b": 0}, {"a": 3, "b": 6}),
        (binding(4, static(a=1)), {"a": 9, "b": 9}, {"a": 4}),
        (binding(4, static(other=1)), {"a": 9, "b": 9}, {"a": 2, "b": 2}),
        (binding(12, DYNAMIC), {"a": 18, "b": 12, "c": 6}, {"a": 6, "b": 4, "c": 2}),
        (binding(9, DYNAMIC, {"a": 2, "b": 4}), {"a": 6, "b": 3}, {"a": 4, "b": 5}),
        (binding(6, DYNAMIC, {"a": 2, "b": 4, "c": 3}), {"a": 0, "b": 0, "c": 0}, {"a": 1, "b": 3, "c": 2}),
        (binding(6, DYNAMIC, {"b": 4, "a": 2}), {"a": 0, "b": 0}, {"b": 4, "a": 2}),
        # Not 7 and 3: the shortest prefix is divided in proportion.
        (binding(10, AGGREGATED), {"a": 7, "b": 6, "c": 5}, {"a": 5, "b": 5}),
        # The cluster that has replicas comes first, and is enough alone.
        (binding(15, AGGREGATED, {"b": 12}), {"a": 9, "b": 3}, {"b": 15}),
        # The replicas of a cluster that is gone are placed elsewhere.
        (binding(6, DYNAMIC, {"gone": 4, "a": 2}), {"a": 9, "b": 0}, {"a": 6}),
        (
            binding(5, DYNAMIC),
            {"a": 2, "b": 2},
            f"failed to assign replicas: failed to scale up: {NOT_ENOUGH.format(4)}",
        ),
        # Upstream adds up in 32 bits.
        (
            binding(5, DYNAMIC),
            {"a": 1_500_000_000, "b": 1_500_000_000},
            f"failed to assign replicas: failed to scale up: {NOT_ENOUGH.format(-1294967296)}",
        ),
    ],
)
def test_replicas_are_assigned_by_the_strategy(spec, available, shares):
    assert divide_into(spec, available) == shares


def test_rescheduling_starts_anew_with_the_replicas_that_are_returned():
    spec = binding(6, AGGREGATED, {"a": 4, "b": 2}, rescheduleTriggeredAt="2026-01-02T00:00:00Z")
    assert divide_into(spec, {"a": 0, "b": 9}, **AGAIN) == {"b": 6}
    too_many = binding(60, DYNAMIC, {"a": 4}, rescheduleTriggeredAt="2026-01-02T00:00:00Z")
    assert (
        divide_into(too_many, {"a": 1}, **AGAIN)
        == f"failed to assign replicas: failed to do fresh scale: {NOT_ENOUGH.format(5)}"
    )


def test_rescheduling_that_was_asked_for_before_the_last_result_is_over():
    spec = binding(6, AGGREGATED, {"a": 4, "b": 2}, rescheduleTriggeredAt="2025-01-02T00:00:00Z")
    assert divide_into(spec, {"a": 0, "b": 9}, **AGAIN) == {"a": 4, "b": 2}


def test_what_runs_no_pods_goes_to_every_cluster_without_a_number():
    assert divide_into(binding(0), {"a": 1, "b": 1}) == {"a": 0, "b": 0}


def test_several_components_go_to_every_selected_cluster_without_a_number():
    parts = [{"name": name, "replicas": 2} for name in ("driver", "worker")]
    assert divide_into(binding(4, DYNAMIC, components=parts), {"a": 9, "b": 9}) == {"a": 0, "b": 0}


def test_unknown_strategy_is_an_error_with_its_name():
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Random"}
    assert "replicaDivisionPreference: Random, please try another" in divide_into(binding(4, scheduling), {"a": 9})


def test_overflow_groups_take_what_does_not_fit_into_the_group():
    affinity = {
        "affinityName": "own",
        "clusterNames": ["a"],
        "overflowAffinities": [{"affinityName": "near", "clusterNames": ["b"]}, {"clusterNames": ["c", "d"]}],
    }
    spec = binding(10, DYNAMIC, placement={"clusterAffinities": [affinity]})
    assert divide_into(spec, {"a": 4, "b": 3, "c": 8, "d": 4}) == {"a": 4, "b": 3, "c": 2, "d": 1}
    assert (
        divide_into(spec, {"a": 4, "b": 3}) == f"failed to assign replicas: {NOT_ENOUGH.format('').replace('  ', ' ')}"
    )


def test_seed_draws_the_order_of_clusters_that_get_nothing_more():
    spec = binding(20, AGGREGATED, dict.fromkeys("abcdefgh", 1))
    available = {"a": 50, **dict.fromkeys("bcdefgh", 0)}
    orders = {tuple(divide_into(spec, available, random=Random(seed))) for seed in range(9)}
    assert len(orders) > 1
    assert {order[0] for order in orders} == {"a"}
    assert tuple(divide_into(spec, available)) == tuple("abcdefgh")


@pytest.mark.long
def test_five_thousand_clusters_are_divided():
    clusters = [cluster(f"m{number}") for number in range(5000)]
    available = {item.key: number % 50 for number, item in enumerate(clusters)}
    shares = divide_into(binding(60_000, DYNAMIC), available, clusters)
    assert sum(shares.values()) == 60_000
    assert all(shares[name] <= available[name] for name in shares)
