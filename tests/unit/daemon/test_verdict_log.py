"""What -v 4, 6 and 10 show of an attempt, and that nothing is decided otherwise for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from podium.config import default_configuration
from podium.daemon.verdict_log import explainer_for
from podium.engine.cluster import Cluster
from podium.engine.store import ObjectStore
from podium.framework.cycle.schedule import Decision
from podium.framework.cycle.steps import run_unasked
from tests.manifests import node, pod

_TAINTS = [{"key": "team", "value": "a", "effect": "NoSchedule"}]


_POD = pod("web", "2", memory="1Gi", scheduler="default-scheduler")


def _decided(verbosity: int) -> tuple[Decision, list[Any]]:
    nodes = [node("small", "1"), node("taken", "8", taints=_TAINTS), node("a", "4"), node("b", "8")]
    cluster = Cluster(default_configuration(), ObjectStore.of([*nodes, _POD]))
    web = cluster.read_pod(_POD)
    engine = replace(cluster.engine, percentage_of_nodes_to_score=100, explainer=explainer_for(verbosity))
    steps = engine.attempt(engine.cycle(cluster.framework_for(web), web))
    with capture_logs() as logs:
        decision = run_unasked(steps)
    return decision, logs


def test_nothing_is_told_and_nothing_is_done_below_4() -> None:
    assert explainer_for(3) is None


def test_from_4_on_the_taints_are_told() -> None:
    _, logs = _decided(4)
    _, line = logs
    assert (line["event"], line["pod"], line["node"]) == ("node had untolerated taints", "default/web", "taken")
    assert line["detail"] == "untolerated taint team=a:NoSchedule"


def test_from_6_on_each_rejection_is_told() -> None:
    _, logs = _decided(6)
    rejected = {each["node"]: each for each in logs if each["event"] == "Plugin rejected node for pod"}
    assert {name: each["plugin"] for name, each in rejected.items()} == {
        "small": "NodeResourcesFit",
        "taken": "TaintToleration",
    }
    assert rejected["small"]["reason"] == "Insufficient cpu"
    assert not [each for each in logs if "score" in each]


def test_from_10_on_each_score_is_told_and_the_decision_is_the_same() -> None:
    decision, logs = _decided(10)
    assert decision == _decided(0)[0]
    by_plugin = [each for each in logs if each["event"] == "Plugin scored node for pod"]
    final = {each["node"]: each["score"] for each in logs if each["event"] == "Calculated node's final score for pod"}
    assert set(final) == {"a", "b"}
    for name, total in final.items():
        assert sum(each["score"] for each in by_plugin if each["node"] == name) == total
    assert {each["plugin"] for each in by_plugin} >= {"NodeResourcesFit", "TaintToleration"}


@pytest.mark.parametrize("verbosity", [4, 6, 10])
def test_the_attempt_itself_is_told_first(verbosity: int) -> None:
    _, logs = _decided(verbosity)
    assert logs[0] == {
        "event": "Attempting to schedule pod",
        "pod": "default/web",
        "component": "scheduler",
        "log_level": "debug",
    }
