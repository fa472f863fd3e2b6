import pytest

from podium.engine.derivation.budgets import Budget, Budgets
from podium.engine.derivation.control_objects import ControlObjects
from tests import workload_manifests
from tests.builders import pod

WEB = {"app": "web"}


def _budget(**spec):
    answer = Budget.of(workload_manifests.budget(WEB, **spec))
    assert answer is not None
    return answer


def _pods(ready, unready=0):
    states = [True] * ready + [False] * unready
    return [
        pod(f"web-{index}", node="n1", labels=WEB, status=workload_manifests.ready(is_ready=is_ready))
        for index, is_ready in enumerate(states)
    ]


def _allows(budget, pods, index=0, healthy_count: int | None = 4):
    return budget.allows(pods[index], pods, lambda covered: healthy_count)


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minAvailable": 2}, 2),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": "51%"}, 3),
        ({"maxUnavailable": 1}, 3),
        ({"maxUnavailable": "25%"}, 3),
        ({"maxUnavailable": "26%"}, 2),
        ({}, 1),
    ],
)
def test_a_healthy_pod_may_go_while_more_than_the_least_are_healthy(spec, least):
    budget = _budget(**spec)
    assert not _allows(budget, _pods(least))
    assert _allows(budget, _pods(least + 1))


def test_an_unready_pod_may_go_while_the_least_are_healthy():
    budget = _budget(minAvailable=2)
    assert _allows(budget, _pods(2, unready=1), index=2)
    assert not _allows(budget, _pods(1, unready=1), index=1)


def test_unready_pods_may_always_go_if_the_budget_says_so():
    budget = _budget(minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert _allows(budget, _pods(0, unready=1))
    assert not _allows(budget, _pods(2))


def test_a_share_of_a_number_that_is_not_known_allows_nothing():
    assert not _allows(_budget(minAvailable="10%"), _pods(4), healthy_count=None)
    assert not _allows(_budget(maxUnavailable=3), _pods(4), healthy_count=None)
    assert _allows(_budget(minAvailable=1), _pods(4), healthy_count=None)


def test_terminating_pods_are_not_counted():
    pods = [*_pods(2), pod("web-9", node="n1", labels=WEB, terminating=True)]
    assert not _allows(_budget(minAvailable=2), pods)


def test_a_budget_covers_its_namespace_only():
    budget = _budget()
    assert budget.key == "default/budget"
    assert budget.covers(pod(labels=WEB))
    assert not budget.covers(pod(labels=WEB, namespace="shop"))
    assert not budget.covers(pod(labels={"app": "db"}))


def test_a_budget_without_a_selector_covers_nothing_and_a_broken_one_is_ignored():
    manifest = workload_manifests.budget(WEB)
    del manifest["spec"]["selector"]
    budget = Budget.of(manifest)
    assert budget is not None
    assert not budget.covers(pod(labels=WEB))
    manifest["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert Budget.of(manifest) is None
    manifest["spec"]["selector"] = "app=web"
    assert Budget.of(manifest) is None


def test_budgets_that_cover_a_pod_are_read_anew_once_they_have_changed():
    web_budget, api_budget = (
        workload_manifests.budget(WEB, maxUnavailable=1),
        workload_manifests.budget({"app": "api"}, "api"),
    )
    objects = ControlObjects([web_budget, api_budget])
    budgets = Budgets(objects)
    (web,) = _pods(1)
    assert [budget.key for budget in budgets.covering(web)] == ["default/budget"]
    assert budgets.covering(pod("alone", labels={"app": "x"})) == ()
    objects.put(workload_manifests.budget(WEB, "second", maxUnavailable=1))
    budgets.refresh("default")
    assert [budget.key for budget in budgets.covering(web)] == ["default/budget", "default/second"]
    objects.drop("PodDisruptionBudget", "default/budget")
    objects.drop("PodDisruptionBudget", "default/second")
    budgets.refresh("default")
    assert budgets.covering(web) == ()


def test_a_budget_that_cannot_be_read_covers_nothing():
    unreadable_budget = workload_manifests.budget(WEB, "broken")
    unreadable_budget["spec"]["selector"] = {"matchExpressions": 1}
    assert Budgets(ControlObjects([unreadable_budget])).covering(_pods(1)[0]) == ()
