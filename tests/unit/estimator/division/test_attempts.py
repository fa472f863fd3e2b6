from podium.estimator.division.attempts import Options, divide
from tests.unit.estimator.division.fleets import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    divide_into,
    question,
    shares,
)

GROUPS = [{"affinityName": name, "clusterNames": [cluster]} for name, cluster in (("first", "a"), ("second", "b"))]


def test_first_group_with_room_is_observed():
    outcome = divide(question(binding(5, DYNAMIC, placement={"clusterAffinities": GROUPS}), {"a": 1, "b": 9}))
    assert (shares(outcome), outcome.affinity, len(outcome.attempts)) == ({"b": 5}, "second", 2)


def test_groups_before_the_observed_one_are_not_tried_again():
    spec = binding(5, DYNAMIC, placement={"clusterAffinities": GROUPS})
    status = {"schedulerObservingAffinityName": "second"}
    assert divide_into(spec, {"a": 9, "b": 9}, status=status) == {"b": 5}
    assert divide_into(spec, {"a": 9, "b": 9}, status={"schedulerObservingAffinityName": "gone"}) == {"a": 5}


def test_first_failure_decides_and_the_observed_name_stays():
    spec = binding(5, DYNAMIC, {"a": 2}, placement={"clusterAffinities": GROUPS})
    outcome = divide(question(spec, {"a": 1, "b": 9}, [cluster("a"), cluster("c")]))
    assert (outcome.reason, outcome.affinity, outcome.is_retried) == ("Unschedulable", "", True)
    # The result is kept.
    assert [target.name for target in outcome.clusters] == ["a"]


def test_no_feasible_cluster_empties_the_result():
    spec = binding(5, DYNAMIC, {"gone": 5}, placement={"clusterAffinity": {"clusterNames": ["gone"]}})
    outcome = divide(question(spec, {"a": 9}))
    assert (outcome.reason, outcome.clusters, outcome.is_retried) == ("NoClusterFit", (), False)


def test_empty_placement_and_no_clusters():
    assert divide_into(binding(2), {"a": 0}) == {"a": 2}
    assert divide_into(binding(2), {}) == "0/0 clusters are available: no cluster exists."


def test_selected_clusters_without_replicas_are_shown_on_request():
    empty_question = question(binding(2, AGGREGATED), {"a": 9, "b": 1}, options=Options(propagate_empty=True))
    assert shares(divide(empty_question)) == {"a": 2, "b": 0}


def test_an_estimator_that_fails_for_one_cluster_counts_for_none():
    assert divide_into(binding(4, DYNAMIC), {"a": 1, "b": "broken"}) == {"a": 2, "b": 2}


def test_answers_that_limit_nothing_and_missing_answers():
    assert divide_into(binding(6, DYNAMIC), {"a": 2**31 - 1, "b": 3}) == {"a": 4, "b": 2}
    assert divide_into(binding(6, DYNAMIC), {"a": -1, "b": 0}) == {"a": 6}
    assert "available replicas -5 are" in divide_into(binding(6, DYNAMIC), {"a": -5})


def test_whole_sets_of_components_go_to_one_cluster():
    spec = binding(
        8,
        AGGREGATED,
        components=[{"name": "driver", "replicas": 1}, {"name": "worker", "replicas": 7}],
        placement={"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]},
    )
    sets = {"a": 0, "b": 1}
    assert shares(divide(question(spec, sets, options=Options(multiple_pod_templates=True)))) == {"b": 0}
    # Without the gate replicas are counted.
    assert "no enough resource when selecting 1 clusters" in divide_into(spec, sets)


def test_duplicated_takes_no_account_of_room():
    assert divide_into(binding(7, DUPLICATED), {"a": 0}) == {"a": 7}
