from __future__ import annotations

from typing import Any

import pytest

from podium.framework import Code, FilterPlugin, PermitPlugin, ReservePlugin, ScorePlugin, Status, unschedulable
from podium.framework.contract.status import ScheduleError
from podium.testing import NotedEvent, node, pod, schedule_once, snapshot_of

NODES = [node("n1"), node("n2", cpu="64")]


class NotOnN1(FilterPlugin):
    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return unschedulable("not here") if node.name == "n1" else None


class LikesN1(ScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 100 if node.name == "n1" else 0


class HoldsBack(PermitPlugin):
    def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status | None, float]:
        self.handle.record(pod, "HeldBack", f"on {node_name}")
        return Status(Code.WAIT), 5.0


class Refuses(ReservePlugin):
    undone: tuple[str, ...] = ()

    def reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        return unschedulable("nothing left")

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        Refuses.undone = (*Refuses.undone, node_name)


class Breaks(ScorePlugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        raise RuntimeError("no idea")


def test_default_plugins_decide_where_no_other_is_named() -> None:
    result = schedule_once(pod(cpu="8"), NODES)
    assert (result.node_name, result.message) == ("n2", "")
    assert {name: status.message for name, status in result.rejected.items()} == {"n1": "Insufficient cpu"}
    assert set(result.scores["NodeResourcesFit"]) == {"n2"}


def test_a_plugin_of_yours_runs_besides_them() -> None:
    result = schedule_once(pod(), NODES, plugins=[NotOnN1, LikesN1])
    assert result.node_name == "n2"
    assert result.rejected["n1"].plugin == "NotOnN1"
    assert result.scores["LikesN1"] == {"n2": 0}


def test_pods_on_nodes_take_their_room() -> None:
    result = schedule_once(pod(cpu="1"), [node("n1", cpu="1")], [pod("other", cpu="1", node="n1")])
    assert result.node_name is None
    assert result.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_pods_that_are_nominated_count_where_they_are_expected() -> None:
    nominated_pod = pod("other", cpu="4", nominated="n1", priority=10)
    assert schedule_once(pod(cpu="1"), NODES, [nominated_pod]).rejected["n1"].message == "Insufficient cpu"


def test_a_configuration_says_what_runs_with_which_weight() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: podium
    plugins: {multiPoint: {enabled: [{name: LikesN1, weight: 7}]}}
"""
    result = schedule_once(pod(), NODES, plugins=[LikesN1, NotOnN1], config=config)
    assert result.scores["LikesN1"] == {"n1": 700, "n2": 0}
    assert result.node_name == "n1"
    assert result.totals["n1"] == sum(scores["n1"] for scores in result.scores.values())
    with pytest.raises(ValueError, match="no profile is named 'other', only podium"):
        schedule_once(pod(scheduler="other"), NODES, plugins=[LikesN1], config=config)


def test_a_pod_that_waits_has_its_node_already() -> None:
    result = schedule_once(pod(), NODES, plugins=[HoldsBack])
    assert result.node_name is not None
    assert result.waits == {"HoldsBack": 5.0}
    assert result.handle.events == [NotedEvent(pod(), "HeldBack", f"on {result.node_name}", "Scheduling", False)]


def test_a_pod_that_reserve_refuses_stays_pending() -> None:
    result = schedule_once(pod(), NODES[:1], plugins=[Refuses])
    assert (result.node_name, result.message) == (None, "nothing left")
    assert result.status is not None
    assert result.status.plugin == "Refuses"
    assert Refuses.undone == ("n1",)


def test_a_cluster_without_nodes_has_none() -> None:
    assert schedule_once(pod(), []).message == "no nodes available to schedule pods"


def test_a_plugin_that_fails_is_named() -> None:
    with pytest.raises(ScheduleError, match='plugin "Breaks" failed with: RuntimeError: no idea'):
        schedule_once(pod(), NODES, plugins=[Breaks])


def test_an_object_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"Node n1: .*cpu"):
        snapshot_of(node("n1", cpu="many"))
