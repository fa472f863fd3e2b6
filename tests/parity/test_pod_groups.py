"""Queues with pod groups: podium tries them as kube-scheduler of each minor does, with the same results for all."""

from __future__ import annotations

import json

import pytest

from tests.parity.recorded import POD_GROUPS, Case, cases, categories, differences, scenarios

OLDER, NEWER = "1.36", "1.37"
CATEGORIES = categories(POD_GROUPS, OLDER)


def roles_of(name):
    """The role of each pod of a question: pods of one role are interchangeable, and so are their names."""
    for scenario, _ in scenarios(POD_GROUPS, OLDER):
        if scenario["id"] == name:
            return {
                f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}": (
                    pod["metadata"].get("labels", {}).get("role")
                )
                for pod in scenario["pods"]
            }
    raise KeyError(name)


def by_role(answer, roles):
    def renamed(pods):
        named = [{**pod, "pod": roles.get(pod["pod"]) or pod["pod"]} for pod in pods]
        return sorted(named, key=lambda pod: json.dumps(pod, sort_keys=True))

    attempts = [{**attempt, "pods": renamed(attempt["pods"])} for attempt in answer.get("attempts", [])]
    return {**answer, "attempts": attempts}


def found(case: Case):
    roles = roles_of(case.id)
    return [f"{case.id}: {each}" for each in differences(by_role(case.expected, roles), by_role(case.answer, roles))]


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_queue_with_groups_is_tried_as_1_36_tries_it(category):
    assert [each for case in cases(POD_GROUPS, category, OLDER) for each in found(case)] == []


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_queue_with_groups_is_tried_as_1_37_tries_it(category):
    assert [each for case in cases(POD_GROUPS, category, NEWER) for each in case.differences] == []


@pytest.mark.parametrize(("minor", "of_each"), [(OLDER, 8), (NEWER, 16)])
def test_no_question_is_left_out(minor, of_each):
    counts = {category: len(cases(POD_GROUPS, category, minor)) for category in CATEGORIES}
    assert counts == dict.fromkeys(categories(POD_GROUPS, minor), of_each)
    assert len(CATEGORIES) == 8


def test_the_comparison_notices_a_pod_on_another_node():
    case = next(each for each in cases(POD_GROUPS, "gang-fit", OLDER) if each.expected["attempts"])
    other = json.loads(json.dumps(case.answer))
    other["attempts"][0]["pods"][0]["node"] = "elsewhere"
    assert found(Case(case.id, case.expected, other)) != []
