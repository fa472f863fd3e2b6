import pytest

from podium.estimator.division import groups as division_groups
from podium.estimator.division.errors import DivisionError
from podium.estimator.division.groups import STEPS_MAX, Group, best_groups
from tests.unit.estimator.division.fleets import AGGREGATED, DUPLICATED, DYNAMIC, binding, cluster, divide_into, static


def _by(*constraints):
    return {
        "spreadConstraints": [
            {"spreadByField": field, "minGroups": low, "maxGroups": high} for field, low, high in constraints
        ]
    }


def test_clusters_are_replaced_from_the_last_until_there_is_enough():
    spec = binding(20, AGGREGATED, {"a": 1, "b": 1}, placement=_by(("cluster", 1, 2)))
    # a and b come first, since they have replicas; b gives way to d, whose replicas are then scaled up.
    assert divide_into(spec, {"a": 4, "b": 1, "c": 5, "d": 30}) == {"a": 3, "d": 17}


@pytest.mark.parametrize(
    ("constraints", "scheduling", "message"),
    [
        ([("cluster", 3, 3)], DYNAMIC, "the number of feasible clusters is less than spreadConstraint.MinGroups"),
        ([("cluster", 1, 0)], DYNAMIC, "no enough resource when selecting 0 clusters"),
        ([("cluster", 1, 1)], DYNAMIC, "no enough resource when selecting 1 clusters"),
        ([("provider", 1, 1)], DYNAMIC, "just support cluster and region spread constraint"),
        ([("region", 3, 3), ("cluster", 1, 3)], DYNAMIC, "the number of feasible region is less than"),
        ([("region", 1, 2), ("cluster", 3, 3)], DYNAMIC, "the number of clusters is less than the cluster spread"),
    ],
)
def test_constraints_that_cannot_be_met_are_an_error(constraints, scheduling, message):
    clusters = [cluster("a", region="r1", provider="p"), cluster("b", region="r2", provider="p")]
    text = divide_into(binding(9, scheduling, placement=_by(*constraints)), {"a": 8, "b": 8}, clusters)
    assert text.startswith(f"failed to select clusters: {message}")


def test_static_weights_ignore_constraints():
    spec = binding(4, static(a=1, b=1), placement=_by(("cluster", 1, 1)))
    assert divide_into(spec, {"a": 8, "b": 8}) == {"a": 2, "b": 2}


def test_each_region_gives_its_best_cluster_and_then_the_best_of_the_others():
    clusters = [cluster("a1", region="a"), cluster("a2", region="a"), cluster("b1", region="b")]
    spec = binding(3, DUPLICATED, placement=_by(("region", 2, 2), ("cluster", 2, 3)))
    available = {"a1": 5, "a2": 9, "b1": 4}
    assert divide_into(spec, available, clusters) == {"a2": 3, "b1": 3, "a1": 3}
    without_cluster_constraint = binding(3, DUPLICATED, placement=_by(("region", 2, 2)))
    assert divide_into(without_cluster_constraint, available, clusters) == {"a2": 3, "b1": 3}


def test_heaviest_combination_of_groups_wins_and_a_prefix_of_it_is_preferred():
    groups = [Group("a", 1, 10), Group("b", 1, 30), Group("c", 2, 20)]
    assert [group.name for group in best_groups(groups, 2, 3, 2)] == ["b", "c"]
    assert [group.name for group in best_groups(groups, 1, 3, 3)] == ["b", "c"]
    assert best_groups(groups, 1, 1, 3) == []


def test_too_many_combinations_end_the_search(monkeypatch):
    monkeypatch.setattr(division_groups, "STEPS_MAX", STEPS_MAX // 20)
    groups = [Group(f"g{number:02}", 1, number) for number in range(40)]
    with pytest.raises(DivisionError, match="40 groups have too many combinations"):
        best_groups(groups, 20, 20, 20)


def test_combinations_that_cannot_have_enough_clusters_are_not_tried():
    assert best_groups([Group(f"g{number:02}", 1, number) for number in range(60)], 1, 60, 61) == []
