from podium.estimator.merge import NO_ANSWER, merge_answers
from podium.estimator.requirements import MAX_INT32


def test_least_answer_rules_and_failed_estimators_play_no_part():
    answers = [{"a": 5, "b": 7}, None, {"a": 9, "b": NO_ANSWER, "stranger": 1}]
    assert merge_answers(["a", "b"], answers, replicas=100) == {"a": 5, "b": 7}


def test_unbounded_cluster_takes_the_whole_workload():
    assert merge_answers(["a", "b"], [{"a": MAX_INT32}], replicas=12) == {"a": 12, "b": 12}
