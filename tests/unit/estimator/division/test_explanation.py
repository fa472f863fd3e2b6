import pytest

from podium.estimator.division import explanation
from podium.estimator.division.attempts import divide
from podium.estimator.division.explanation import explain_shares
from tests.unit.estimator.division.fleets import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    divide_into,
    question,
    static,
)


def _shares_of(asked_question):
    outcome = divide(asked_question)
    return {
        share.cluster: (share.replicas, share.why, share.remedy) for share in explain_shares(asked_question, outcome)
    }


def test_each_cluster_says_why_and_what_would_bring_more_in():
    spec = binding(12, DYNAMIC, placement={"clusterAffinity": {"exclude": ["d"]}})
    assert _shares_of(question(spec, {"a": 18, "b": 12, "c": 6, "d": 9})) == {
        "a": (6, "takes 18", "5 more available replicas"),
        "b": (4, "takes 12", "3 more available replicas"),
        "c": (2, "takes 6", "3 more available replicas"),
        "d": (
            0,
            "cluster(s) did not match the placement cluster affinity constraint",
            "select it by the placement's affinity",
        ),
    }


@pytest.mark.parametrize(
    ("scheduling", "had", "available"),
    [
        (DYNAMIC, {}, {"a": 18, "b": 12, "c": 6}),
        (DYNAMIC, {"a": 3}, {"a": 1, "b": 12, "c": 9}),
        (AGGREGATED, {}, {"a": 18, "b": 12, "c": 6}),
        (DYNAMIC, {}, {"a": 1, "b": 1}),
    ],
)
def test_what_is_said_to_bring_more_in_does_and_one_less_does_not(scheduling, had, available):
    spec = binding(12, scheduling, had)
    shares_by_name = _shares_of(question(spec, available))
    for name, (replicas, _, remedy) in shares_by_name.items():
        assert (replicas == 12) == (remedy == "")
        if not remedy:
            continue
        amount = int(remedy.split()[0])
        enough = divide_into(spec, {**available, name: available[name] + amount})
        assert enough[name] > replicas
        one_less = divide_into(spec, {**available, name: available[name] + amount - 1})
        assert isinstance(one_less, str) or one_less.get(name, 0) <= replicas


def test_static_weights_say_which_weight_is_enough():
    spec = binding(9, static(a=1, b=2))
    assert _shares_of(question(spec, {"a": 0, "b": 0})) == {
        "b": (6, "weight 2 of 3", "weight 3"),
        "a": (3, "weight 1 of 3", "weight 2"),
    }
    assert divide_into(binding(9, static(a=2, b=2)), {"a": 0, "b": 0})["a"] > 3


def test_clusters_that_are_not_selected_or_not_divided():
    constraint = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
    shares_by_name = _shares_of(question(binding(2, DUPLICATED, placement=constraint), {"a": 5, "b": 4}))
    assert shares_by_name["a"] == (2, "every selected cluster gets all 2", "")
    assert shares_by_name["b"] == (
        0,
        "not among the 1 clusters that the spread constraints select",
        "a greater maxGroups",
    )
    assert _shares_of(question(binding(0), {"a": 1})) == {"a": (None, "every selected cluster gets the object", "")}


def test_reasons_that_are_rare():
    clusters = [cluster("a", apis=[]), cluster("b", taints=[{"key": "k", "effect": "NoExecute"}]), cluster("c")]
    spec = binding(1, DUPLICATED, {"gone": 1}, placement={"spreadConstraints": [{"spreadByField": "region"}]})
    shares_by_name = _shares_of(question(spec, clusters=clusters))
    assert shares_by_name["c"][2] == "set spec.region"
    assert "serve the workload's kind there" in shares_by_name["a"][2]
    assert "tolerate the taint" in shares_by_name["b"][2]


def test_many_clusters_do_not_multiply_the_work(monkeypatch):
    monkeypatch.setattr(explanation, "DIVIDED_CLUSTERS_MAX", 300)
    available = {f"m{number:02}": number for number in range(30)}
    case = question(binding(90, DYNAMIC), available)
    shares = explain_shares(case, divide(case))
    assert len(shares) == 30
    assert shares[0].remedy.endswith("more available replicas")
    assert shares[-1].remedy == explanation.NOT_TRIED
