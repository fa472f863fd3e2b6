from __future__ import annotations

from typing import Any

from podium.engine.cluster import Cluster
from tests.looks import after_looks
from tests.manifests import node, pod


def web(name: str = "web", cpu: str = "1", **fields: Any) -> Any:
    return pod(name, cpu, scheduler="default-scheduler", **fields)


def test_an_evaluation_says_that_nobody_has_looked_for_a_preemption() -> None:
    cluster = Cluster.load([node("n1", "2"), web("running", "2", node="n1", priority=0)])
    subject = web(cpu="2", priority=10)
    assert cluster.evaluate(subject).as_dict()["nominated"] == "n1"
    limit = after_looks(0)
    answer = cluster.evaluate(subject, limit).as_dict()
    assert (answer["partial"], limit.is_noticed, "nominated" in answer) == (True, True, False)
    assert answer["fit_error"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert "whether preemption helps was not found out: the time limit is over" in answer["message"]


def test_a_victim_that_is_being_deleted_already_is_not_deleted_again() -> None:
    leaving = web("leaving", "2", node="n1", priority=0)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = Cluster.load([node("n1", "3"), leaving, web("running", "1", node="n1", priority=0)])
    answer = cluster.evaluate(web(cpu="3", priority=10)).as_dict()
    assert (answer["nominated"], answer["victims"]) == ("n1", ["default/running"])


def test_the_outcome_is_said_in_one_clause() -> None:
    cluster = Cluster.load([node("n1", "2"), node("n2", "8"), node("n3", "8", unschedulable=True)])

    def verdict(cpu: str) -> str:
        subject = cluster.read_pod(web(cpu=cpu))
        return cluster.evaluate(subject).verdict_on(subject)

    assert verdict("4") == "default/web fits on 1 of 3 nodes and would go to n2"
    assert verdict("9") == (
        "default/web fits on no node: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
    )
