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
    def by_name_of_role(pods):
        pods_by_role = [{**pod, "pod": roles.get(pod["pod"]) or pod["pod"]} for pod in pods]
        return sorted(pods_by_role, key=lambda pod: json.dumps(pod, sort_keys=True))

    attempts = [{**attempt, "pods": by_name_of_role(attempt["pods"])} for attempt in answer.get("attempts", [])]
    return {**answer, "attempts": attempts}


def differences_by_role(case: Case):
    roles = roles_of(case.id)
    return [
        f"{case.id}: {difference}"
        for difference in differences(by_role(case.recorded_answer, roles), by_role(case.answer, roles))
    ]


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_queue_with_groups_is_tried_as_1_36_tries_it(category):
    assert [difference for case in cases(POD_GROUPS, category, OLDER) for difference in differences_by_role(case)] == []


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_queue_with_groups_is_tried_as_1_37_tries_it(category):
    assert [each for case in cases(POD_GROUPS, category, NEWER) for each in case.differences] == []


@pytest.mark.parametrize(("minor", "of_each"), [(OLDER, 8), (NEWER, 16)])
def test_no_question_is_left_out(minor, of_each):
    counts = {category: len(cases(POD_GROUPS, category, minor)) for category in CATEGORIES}
    assert counts == dict.fromkeys(categories(POD_GROUPS, minor), of_each)
    assert len(CATEGORIES) == 8


def test_the_comparison_notices_a_pod_on_another_node():
    case = next(
        candidate for candidate in cases(POD_GROUPS, "gang-fit", OLDER) if candidate.recorded_answer["attempts"]
    )
    changed_answer = json.loads(json.dumps(case.answer))
    changed_answer["attempts"][0]["pods"][0]["node"] = "elsewhere"
    assert differences_by_role(Case(case.id, case.recorded_answer, changed_answer)) != []
