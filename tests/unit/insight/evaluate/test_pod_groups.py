from __future__ import annotations

import json
from typing import Any

from podium.insight.evaluate import Evaluator

GATES = {"GenericWorkload": True}


def a_node(name: str, cpu: str = "2") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def a_group(min_count: int | None, name: str = "gang", priority: int = 0) -> dict[str, Any]:
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": policy, "priority": priority},
    }


def a_pod(name: str, group: str = "gang", cpu: str = "1", priority: int = 0, **spec: Any) -> dict[str, Any]:
    grouped = {"schedulingGroup": {"podGroupName": group}} if group else {}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, "priority": priority, **grouped, **spec},
    }


def ask(objects: list[Any], pods: list[Any], gates: dict[str, bool] = GATES) -> dict[str, Any]:
    line = json.dumps({"id": "q", "objects": objects, "pods": pods, "gates": gates}).encode()
    return Evaluator().answer_line(line, "q")


def test_a_gang_is_tried_as_soon_as_it_is_complete_and_placed_as_a_whole() -> None:
    answer = ask([a_node("n1"), a_group(2)], [a_pod("a"), a_pod("b")])
    (attempt,) = answer["attempts"]
    assert attempt["group"] == "default/gang"
    assert {pod["pod"]: pod["node"] for pod in attempt["pods"]} == {"default/a": "n1", "default/b": "n1"}
    assert attempt["condition"] == {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
    }
    assert answer["gated"] == {}


def test_an_incomplete_gang_stays_gated_while_others_are_placed() -> None:
    answer = ask([a_node("n1"), a_group(2)], [a_pod("a"), a_pod("alone", group="")])
    assert answer["attempts"] == [{"pods": [{"pod": "default/alone", "node": "n1"}]}]
    assert answer["gated"]["default/a"]["plugin"] == "GangScheduling"
    assert answer["gated"]["default/a"]["code"] == "UnschedulableAndUnresolvable"


def test_a_gang_that_does_not_fit_is_tried_once() -> None:
    answer = ask([a_node("n1"), a_group(3)], [a_pod(name) for name in "abc"])
    (attempt,) = answer["attempts"]
    assert [pod["reason"] for pod in attempt["pods"]] == ["Unschedulable"] * 3
    assert attempt["condition"]["message"] == (
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )


def test_a_group_takes_the_turn_of_its_own_priority() -> None:
    pods = [a_pod("a", priority=1), a_pod("alone", group="", priority=2), a_pod("b", priority=1)]
    answer = ask([a_node("n1", cpu="3"), a_group(None, priority=1)], pods)
    assert [attempt.get("group") for attempt in answer["attempts"]] == [None, "default/gang"]
    assert [pod["pod"] for pod in answer["attempts"][1]["pods"]] == ["default/a", "default/b"]


def test_victims_are_named_and_gone() -> None:
    running = a_pod("running", group="", nodeName="n1", cpu="2")
    pods = [a_pod("a", priority=9), a_pod("b", priority=9), a_pod("later", group="", priority=1)]
    answer = ask([a_node("n1"), a_group(2), running], pods)
    first, second = answer["attempts"]
    assert first["victims"] == ["default/running"]
    assert {pod["nominated"] for pod in first["pods"]} == {"n1"}
    assert "node" not in second["pods"][0]


def test_without_the_gate_every_pod_is_on_its_own() -> None:
    answer = ask([a_node("n1"), a_group(3)], [a_pod("a")], gates={})
    assert answer["placements"] == [{"pod": "default/a", "node": "n1"}]


def test_a_single_pod_is_no_question_about_groups() -> None:
    line = json.dumps({"objects": [a_node("n1")], "pod": a_pod("a"), "gates": GATES}).encode()
    assert "not as a single pod" in Evaluator().answer_line(line, "q")["error"]


def test_a_gate_that_podium_does_not_have_is_named() -> None:
    answer = ask([a_node("n1")], [a_pod("a")], gates={"DRAWorkloadResourceClaims": True})
    assert answer["error"].startswith("cannot set feature gate DRAWorkloadResourceClaims")
