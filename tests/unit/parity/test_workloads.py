"""Questions about workloads are drawn from their seed alone, and what chance decided is noticed."""

from __future__ import annotations

import pytest

from tests.parity.workloads.comparison import objects_known
from tests.parity.workloads.naming import Naming
from tests.parity.workloads.outcome import comparable, outcome_of
from tests.parity.workloads.plan import Plan
from tests.parity.workloads.plane import ties_in
from tests.parity.workloads.questions import CATEGORIES, draw_plan

ROUNDS = 6


def test_a_question_follows_from_its_seed_and_number():
    assert [draw_plan(3, number) for number in range(20)] == [draw_plan(3, number) for number in range(20)]
    assert draw_plan(3, 0) != draw_plan(4, 0)


def test_categories_take_turns():
    categories = [draw_plan(3, number).category for number in range(len(CATEGORIES))]
    assert categories == list(CATEGORIES)


@pytest.mark.parametrize("seed", range(10))
def test_questions_have_one_step_and_no_name_twice(seed):
    for number in range(ROUNDS * len(CATEGORIES)):
        assert_sound(draw_plan(seed, number))


def assert_sound(plan: Plan) -> None:
    objects_created = [*plan.settings, *plan.workloads, *plan.nodes, *plan.daemons]
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in objects_created]
    assert len(set(names)) == len(names)
    assert len(plan.step) == 1
    nodes = plan.zones.keys() | {""}
    assert {pod.node for pods in plan.pods.values() for pod in pods} <= nodes


def score_line(pod: str, node: str, score: int) -> str:
    return f'I1 schedule_one.go:1] "Calculated node\'s final score for pod" pod="{pod}" node="{node}" score={score}\n'


def test_two_best_nodes_are_a_tie_and_two_others_are_none():
    tie = [score_line("shop/web-1", "n1", 9), score_line("shop/web-1", "n2", 9), score_line("shop/web-1", "n3", 4)]
    none = [score_line("shop/web-2", "n1", 9), score_line("shop/web-2", "n2", 4), score_line("shop/web-2", "n3", 4)]
    assert ties_in(iter([*tie, "something else\n", *none])) == ["shop/web-1"]


def test_the_second_attempt_at_a_pod_is_another_one():
    first = [score_line("shop/web-1", "n1", 9), score_line("shop/web-1", "n2", 4)]
    second = [score_line("shop/web-1", "n1", 4), score_line("shop/web-1", "n2", 9)]
    assert ties_in(iter([*first, *second])) == []


def pod(name: str, node: str, uid: str, owner: str = "web-5d9f8c") -> dict[str, object]:
    owners = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    meta = {"name": name, "namespace": "shop", "uid": uid, "ownerReferences": owners}
    message = f'persistentvolumeclaim "{name}-scratch" not found'
    conditions = [] if node else [{"type": "PodScheduled", "status": "False", "message": message}]
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": {"conditions": conditions}}


def workload(kind: str, name: str, owner: str = "") -> dict[str, object]:
    owners = [{"kind": "Deployment", "name": owner, "uid": owner, "controller": True}] if owner else []
    return {"kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": owners}}


def test_pods_count_for_the_workload_at_the_top_and_messages_name_no_pod_that_is_made_up():
    workloads = [workload("Deployment", "web"), workload("ReplicaSet", "web-5d9f8c", "web")]
    question = {"objects": [*workloads, pod("web-5d9f8c-aaaaa", "n1", "1")], "step": {"drain": "n1"}}
    answers = []
    for suffix in ("bbbbb", "ccccc"):
        pods_after = [*workloads, pod(f"web-5d9f8c-{suffix}", "", suffix)]
        expect = outcome_of(question, pods_after, [], [], [])
        answers.append({**question, "expect": expect})
    expect = answers[0]["expect"]
    assert expect["gone"] == ["shop/web-5d9f8c-aaaaa"]
    assert expect["workloads"] == {
        "shop/Deployment/web": {
            "nodes": {"": 1},
            "new": 1,
            "messages": ['persistentvolumeclaim "web-*" not found'],
        }
    }
    assert comparable(answers[0]) == comparable(answers[1])


def test_a_pod_that_podium_makes_up_belongs_to_the_workload_with_the_longest_name():
    question = {
        "objects": [workload("StatefulSet", "db"), workload("StatefulSet", "db-copy")],
        "step": {"apply": [{"kind": "Pod", "metadata": {"generateName": "job-", "namespace": "shop"}}]},
    }
    naming = Naming(objects_known(question))
    names = ("shop/db-0", "shop/db-copy-0", "shop/job-x7k2p", "shop/other")
    assert [naming.workload_named(name) for name in names] == [
        "shop/StatefulSet/db",
        "shop/StatefulSet/db-copy",
        "shop/Pod/job-*",
        "shop/Pod/other",
    ]
