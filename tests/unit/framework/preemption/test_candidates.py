from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from podium.config import RELEASES
from podium.framework.contract.status import Status, error_status
from podium.framework.preemption import candidates as preemption
from podium.framework.preemption.candidates import Budgets, Candidate, Candidates, errors_of
from podium.objects.unreadable import UnreadableBudget
from podium.objects.workloads import PodDisruptionBudget
from tests.unit.framework.rooms import DB, IMPORTANCE, TOO_FULL, budget, pod_on_node

# ---------------------------------------------------------------- budgets


def test_a_budget_lets_as_many_go_as_it_allows_the_most_important_first():
    pods = [pod_on_node(f"db-{index}", **DB) for index in range(4)]
    violating, unaffected = Budgets([budget("b", 3)]).split(pods)
    assert (violating, unaffected) == (pods[3:], pods[:3])


class Together:
    def __init__(self, *pods: Any) -> None:
        self.pods = pods


def test_pods_that_go_together_violate_a_budget_together():
    first, two, three = (pod_on_node(f"db-{index}", **DB) for index in range(3))
    pair, single = Together(first, two), Together(three)
    assert Budgets([budget("b", 1)]).split_units([pair, single]) == ([pair, single], [])
    assert Budgets([budget("b", 1)]).split_units([single, pair]) == ([pair], [single])
    assert Budgets([budget("b", 2)]).split_units([pair, single]) == ([single], [pair])


def test_each_split_begins_anew():
    budgets = Budgets([budget("b", 1)])
    pods = [pod_on_node("db", **DB)]
    assert budgets.split(pods) == budgets.split(pods) == ([], pods)


def test_the_first_budget_that_a_pod_exceeds_spares_the_later_ones():
    """1.36 counts down each budget of the pod."""
    one, two = pod_on_node("one", **DB), pod_on_node("two", labels={"app": "db", "tier": "back"})
    tier, db = budget("tier", 0, selector={"matchLabels": {"tier": "back"}}), budget("db", 1)
    assert Budgets([tier, db]).split([two, one]) == ([two], [one])
    assert Budgets([db, tier]).split([two, one]) == ([two, one], [])
    assert Budgets([tier, db], RELEASES["1.36"].preemption).split([two, one]) == ([two, one], [])


@pytest.mark.parametrize(
    "foreign_budget",
    [
        budget("elsewhere", 0, namespace="other"),
        budget("empty", 0, selector={}),
        budget("not-mine", 0, selector={"matchLabels": {"app": "web"}}),
        budget("counted", 0, disrupted=("db",)),
    ],
)
def test_budgets_that_do_not_protect_the_pod(foreign_budget: PodDisruptionBudget):
    pods = [pod_on_node("db", **DB)]
    assert Budgets([foreign_budget]).split(pods) == ([], pods)


def test_a_budget_with_an_invalid_selector_is_violated_by_any_pod_of_its_namespace():
    invalid = budget(
        "invalid", 5, selector={"matchExpressions": [{"key": "app", "operator": "Like", "values": ["db"]}]}
    )
    pods = [pod_on_node("db", **DB), pod_on_node("web", labels={"app": "web"})]
    assert Budgets([invalid]).split(pods) == (pods, [])


@pytest.mark.parametrize(
    ("selector", "is_selector_read", "forbidden"),
    [
        ({"matchLabels": {"app": "db"}}, True, ["db"]),
        ({"matchLabels": {"app": "db"}}, False, ["db", "web"]),
        ({"matchExpressions": [{"key": "app", "operator": "Like"}]}, True, ["db", "web"]),
    ],
)
def test_a_budget_that_cannot_be_read_forbids_whatever_it_may_be_for(selector, is_selector_read, forbidden):
    read = budget("odd", 5, selector=selector)
    odd = UnreadableBudget(metadata=read.metadata, spec=read.spec, is_selector_read=is_selector_read)
    pods = [pod_on_node("db", **DB), pod_on_node("web", labels={"app": "web"})]
    budgets = Budgets([budget("b", 1), odd])
    assert budgets.has_unreadable
    assert [pod.metadata.name for pod in pods if budgets.forbid(pod)] == forbidden
    assert not budgets.forbid(pod_on_node("elsewhere", namespace="other", **DB))
    assert not Budgets([read]).has_unreadable


def test_a_selector_is_held_against_each_set_of_labels_once(monkeypatch):
    class Counting:
        everything = nothing = False
        labels_asked: ClassVar[list[Any]] = []

        def matches(self, labels: Any) -> bool:
            self.labels_asked.append(labels)
            return labels == DB["labels"]

    monkeypatch.setattr(preemption, "compile_selector", lambda _: Counting())
    budgets = Budgets([budget("b", 1)])
    pods = [pod_on_node("db-1", **DB), pod_on_node("web-1", labels={"app": "web"}), pod_on_node("db-2", **DB)]
    for _ in range(2):
        assert budgets.split(pods) == ([pods[2]], pods[:2])
    assert Counting.labels_asked == [DB["labels"], {"app": "web"}]


def test_a_budget_without_selector_protects_nobody():
    bare = msgspec.convert({"metadata": {"name": "b", "namespace": "default"}}, PodDisruptionBudget)
    assert Budgets([bare]).split([pod_on_node("db", **DB)])[0] == []


def test_a_pod_without_labels_is_protected_by_nobody():
    everyone = budget("b", 0, selector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]})
    assert Budgets([everyone]).split([pod_on_node("bare")])[0] == []


# ---------------------------------------------------------------- which candidate is best


def candidate(name: str, *priorities: int, violations: int = 0, start_time: str = "2025-01-01T00:00:00Z") -> Candidate:
    victims = [pod_on_node(f"{name}-{index}", priority, start_time) for index, priority in enumerate(priorities)]
    return Candidate(name, tuple(victims), violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (candidate("fewer violations", 9, 9), candidate("b", 1, violations=1)),
        (candidate("less important", 5, 5, 5), candidate("b", 6)),
        (candidate("smaller sum", 5, 1), candidate("b", 5, 2)),
        (candidate("fewer victims", 5), candidate("b", 5, 5)),
        (candidate("fewer, though negative", -5), candidate("b", -5, -5)),
        (candidate("younger", 5, start_time="2025-03-01T00:00:00Z"), candidate("b", 5)),
    ],
)
def test_what_makes_a_candidate_better(better: Candidate, worse: Candidate):
    assert Candidates([worse, better]).cheapest(IMPORTANCE) is better
    assert Candidates([better, worse]).cheapest(IMPORTANCE) is better


def test_the_start_that_counts_is_the_first_among_the_most_important():
    late_low = Candidate(
        "a", (pod_on_node("a", 5, "2025-02-01T00:00:00Z"), pod_on_node("b", 1, "2024-01-01T00:00:00Z")), 0
    )
    early_high = Candidate(
        "b", (pod_on_node("a", 5, "2025-01-01T00:00:00Z"), pod_on_node("b", 1, "2025-01-01T00:00:00Z")), 0
    )
    assert Candidates([early_high, late_low]).cheapest(IMPORTANCE) is late_low


def test_among_equals_the_first_is_chosen():
    first, second = candidate("a", 5), candidate("b", 5)
    assert Candidates([first, second]).cheapest(IMPORTANCE) is first
    assert Candidates([second, first]).cheapest(IMPORTANCE) is second


@pytest.mark.parametrize(
    ("statuses", "text"),
    [
        ([TOO_FULL], ""),
        ([error_status("a"), TOO_FULL], "a"),
        ([error_status("a"), error_status("a")], "a"),
        ([error_status("a"), error_status("b")], "[a, b]"),
    ],
)
def test_errors_in_one_line(statuses: list[Status], text: str):
    assert errors_of(statuses) == text
