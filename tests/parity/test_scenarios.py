"""930 scenarios, 80 queues and 400 changes of a cluster: podium's answers are those of kube-scheduler 1.36.2."""

import pytest

from tests.parity.recorded import HINTS, SCENARIOS, SEQUENCES, all_cases, cases, categories, differences


@pytest.mark.parametrize("category", categories(SCENARIOS))
def test_one_attempt_over_all_nodes_finds_what_upstream_finds(category):
    assert [each for case in cases(SCENARIOS, category) for each in case.differences] == []


@pytest.mark.parametrize("category", categories(HINTS))
def test_change_of_the_cluster_means_to_every_plugin_what_it_means_upstream(category):
    assert [each for case in cases(HINTS, category) for each in case.differences] == []


def test_queue_is_placed_pod_for_pod_as_upstream_places_it():
    """Sampling, rotation and tie-break included."""
    assert [each for case in all_cases(SEQUENCES) for each in case.differences] == []


def test_no_question_is_left_out():
    assert len(list(all_cases(SCENARIOS))) == 930
    assert len(list(all_cases(HINTS))) == 400
    placements = [case.expected["placements"] for case in all_cases(SEQUENCES)]
    assert (len(placements), sum(map(len, placements))) == (80, 3419)


def test_preemptions_choose_upstreams_victims_and_node():
    preemptions = [case for case in all_cases(SCENARIOS) if "postfilter" in case.expected]
    chosen = [case.expected for case in preemptions if "nominated" in case.expected]
    assert (len(preemptions), len(chosen), sum(len(each["victims"]) for each in chosen)) == (280, 22, 44)
    for case in preemptions:
        for field in ("postfilter", "nominated", "victims"):
            assert case.answer.get(field) == case.expected.get(field), f"{case.id}: {field}"


def test_comparison_notices_a_single_other_score():
    case = next(case for case in all_cases(SCENARIOS) if "scores" in case.expected)
    node, scores = next(iter(case.expected["scores"].items()))
    other = {**case.answer, "scores": {**case.answer["scores"], node: {**scores, "total": scores["total"] + 1}}}
    (difference,) = differences(case.expected, other)
    assert difference.startswith(f"scores.{node}.total: expected {scores['total']}, got {scores['total'] + 1}")
