"""Vectors of Karmada's general estimator, its documentation's included."""

import pytest

from podium.estimator.general import ModelsError, ModelsSemantics, general_replicas, general_sets, replicas_by_models
from podium.estimator.resource_models import default_models
from tests.unit.estimator.members import asking, assumptions, cluster, part

ON_THE_WAY = [assumptions(part(2, "500m", "1Gi"))]


def _summary(allocatable, allocations=None, allocating=None, **fields):
    return cluster(allocatable=allocatable, allocated=allocations or {}, allocating=allocating or {}, **fields)


DOCUMENTED = _summary({"cpu": "4", "memory": "8Gi", "pods": "100"}, {"cpu": "1", "memory": "2Gi", "pods": "20"})


@pytest.mark.parametrize(
    ("clusters", "replicas"),
    [
        (_summary({"cpu": "4", "pods": "110"}, {"cpu": "950m", "pods": "11"}), 6),
        (_summary({"cpu": "4", "pods": "110"}, {"cpu": "2", "pods": "11"}), 4),
        (_summary({"cpu": "4", "pods": "110"}, {"cpu": "1", "pods": "110"}), 0),
        (_summary({"cpu": "4", "pods": "110"}, {"cpu": "1"}, {"cpu": "2"}), 2),
    ],
)
def test_summary_bounds_replicas_of_half_a_core(clusters, replicas):
    assert general_replicas(clusters, asking("500m")) == replicas


def test_what_is_on_its_way_is_deducted():
    assert general_replicas(DOCUMENTED, asking("500m", "1Gi")) == 6
    assert general_replicas(DOCUMENTED, asking("500m", "1Gi"), ON_THE_WAY) == 4


def test_request_for_nothing_is_bounded_by_pods_and_one_for_what_is_not_there_fits_nowhere():
    assert general_replicas(DOCUMENTED, None) == 80
    assert general_replicas(DOCUMENTED, asking()) == 80
    assert general_replicas(DOCUMENTED, asking("0")) == 80
    assert general_replicas(DOCUMENTED, asking("1", gpu="1")) == 0


@pytest.mark.parametrize(
    ("models", "requirements", "replicas"),
    [
        ([{"cpu": "0"}, {"cpu": "1"}, {"cpu": "2"}], asking("1500m"), 1),
        ([{"cpu": "0"}, {"cpu": "1"}, {"cpu": "2"}], asking("3"), 0),
        ([{"cpu": str(i), "memory": f"{i}Gi"} for i in range(3)], asking("1", "1.5Gi"), 1),
        ([{"cpu": str(i), "memory": f"{i}Gi"} for i in range(3)], asking("1", "2.5Gi"), 0),
    ],
)
def test_node_of_a_grade_has_what_the_grade_begins_with(models, requirements, replicas):
    assert replicas_by_models(cluster(models, [1] * 3), requirements) == replicas


def test_models_without_grades_are_an_error_and_the_summary_answers_instead():
    without = cluster([], [3], allocatable={"cpu": "4", "pods": "10"})
    with pytest.raises(ModelsError):
        replicas_by_models(without, asking("1"))
    assert general_replicas(without, asking("1")) == 4


def test_models_of_more_nodes_than_can_be_tried_leave_the_answer_to_the_summary():
    huge = cluster([{"cpu": "0"}, {"cpu": "4"}], [0, 2_000_000_000], allocatable={"cpu": "4", "pods": "10"})
    assert general_replicas(huge, asking("1")) == 4


def test_assumed_workloads_take_room_on_nodes_of_grades():
    graded = cluster([{"cpu": "0"}, {"cpu": "1"}], [0, 3])
    assert replicas_by_models(graded, asking("500m")) == 6
    assert replicas_by_models(graded, asking("500m"), [assumptions(part(4, "500m"))]) == 2


def test_resource_that_models_do_not_list_leaves_no_room_now_and_once_left_it_to_the_summary():
    graded = cluster(
        [{"cpu": "0"}, {"cpu": "4"}], [0, 2], allocatable={"cpu": "9", "example.com/gpu": "3", "pods": "50"}
    )
    requirements = asking("1", gpu="1")
    assert general_replicas(graded, requirements) == 0
    assert general_replicas(graded, requirements, semantics=ModelsSemantics.V1_17) == 3


def _documented_cluster(*counts):
    models = [{model_range.name: model_range.min for model_range in model.ranges} for model in default_models()]
    return cluster(models, [dict(counts).get(grade, 0) for grade in range(len(models))])


M1, M2, M3 = _documented_cluster((2, 1), (3, 6)), _documented_cluster((2, 4), (3, 4)), _documented_cluster((6, 1))


@pytest.mark.parametrize(
    ("semantics", "requirements", "replicas"),
    [
        (ModelsSemantics.CURRENT, asking("3", "20Gi"), [6, 4, 10]),
        (ModelsSemantics.V1_17, asking("3", "20Gi"), [6, 4, 10]),
        (ModelsSemantics.V1_11, asking("3", "20Gi"), [7, 8, 10]),
        (ModelsSemantics.CURRENT, asking("3", "60Gi"), [0, 0, 4]),
        (ModelsSemantics.V1_17, asking("3", "60Gi"), [0, 0, 4]),
        (ModelsSemantics.V1_11, asking("3", "60Gi"), [6, 4, 4]),
    ],
)
def test_documented_clusters_by_the_semantics_of_three_times(semantics, requirements, replicas):
    assert [
        general_replicas(member_summary, requirements, semantics=semantics) for member_summary in (M1, M2, M3)
    ] == replicas


def test_proposal_521_models_tell_fragments_from_room():
    models = [{"cpu": "0"}, {"cpu": "8"}, {"cpu": "16"}]
    ten_of_eight = cluster(models, [0, 10, 0], allocatable={"cpu": "80", "pods": "999"})
    assert general_replicas(ten_of_eight, asking("12")) == 0
    assert general_replicas(cluster(models, [0, 0, 2], allocatable={"cpu": "32", "pods": "999"}), asking("12")) == 2
    assert general_replicas(cluster(allocatable={"cpu": "80", "pods": "999"}), asking("12")) == 6


# ---------------------------------------------------------------- sets


@pytest.mark.parametrize(
    ("models", "counts", "components", "sets"),
    [
        ([{"cpu": "500m"}, {"cpu": "1"}, {"cpu": "2"}], [5, 0, 10], [part(1, "1500m")], 10),
        (
            [
                {"cpu": c, "memory": m, "example.com/gpu": g}
                for c, m, g in ((1, "2Gi", 0), (2, "4Gi", 1), (4, "8Gi", 2))
            ],
            [4, 3, 2],
            [part(2, "2", "4Gi", gpu="1")],
            3,
        ),
        (
            [{"cpu": c, "memory": m} for c, m in ((1, "2Gi"), (3, "10Gi"), (4, "12Gi"))],
            [2, 6, 3],
            [part(1, "1", "2Gi"), part(3, "3", "10Gi")],
            3,
        ),
    ],
)
def test_sets_are_placed_on_nodes_of_grades(models, counts, components, sets):
    plenty = {"cpu": "9999", "memory": "9999Gi", "example.com/gpu": "99", "pods": "9999"}
    assert general_sets(cluster(models, counts, allocatable=plenty), components) == sets


def test_set_that_requests_nothing_is_bounded_by_pods():
    assert general_sets(_summary({"cpu": "1", "pods": "100"}), [part(1)]) == 100
    assert general_sets(_summary({"cpu": "1", "pods": "100"}), []) == 100


@pytest.mark.parametrize(
    ("allocatable", "components", "sets"),
    [
        ({"cpu": "10", "pods": "100"}, [part(1, "1"), part(2, "1500m")], 2),
        ({"cpu": "100", "memory": "6Gi", "pods": "100"}, [part(1, "5", "6Gi")], 1),
        ({"cpu": "100", "pods": "3"}, [part(1, "1"), part(2, "1")], 1),
        ({"example.com/gpu": "4", "pods": "100"}, [part(1, gpu="1")], 4),
    ],
)
def test_summary_bounds_sets(allocatable, components, sets):
    assert general_sets(_summary(allocatable), components) == sets


def test_decimal_and_binary_amounts_are_compared_as_upstream_does():
    """Thousandths against units: the one is a thousand times too small, the other a thousand times too large."""
    assert general_sets(_summary({"memory": "4Gi", "pods": "9999"}), [part(1, memory="1M")]) == 4
    assert general_sets(_summary({"memory": "2000000000", "pods": "9999"}), [part(1, memory="1Gi")]) == 1862


def test_cluster_without_a_summary_has_room_for_nothing():
    from podium.estimator.cluster_objects import Cluster

    assert general_replicas(Cluster(), asking("1")) == 0
    assert general_sets(Cluster(), [part(1, "1")]) == 0


def test_sets_deduct_what_is_on_its_way():
    assert general_sets(_summary({"cpu": "10", "pods": "100"}), [part(1, "1")], [assumptions(part(3, "2"))]) == 4
