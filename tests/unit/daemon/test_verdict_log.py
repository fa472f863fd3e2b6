"""What -v 4, 6 and 10 show of an attempt, and that nothing is decided otherwise for it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from podium.config import Extender, default_configuration
from podium.daemon.verdict_log import explainer_for
from podium.engine.cluster import Cluster
from podium.engine.store import ObjectStore
from podium.framework.contract.questions import AskFilter, ExtenderFailed, Filtered, Scored
from podium.framework.contract.steps import run_unasked
from podium.framework.cycle.extenders import Extenders
from podium.framework.cycle.schedule import Decision
from tests.manifests import node, pod

_TAINTS = [{"key": "team", "value": "a", "effect": "NoSchedule"}]


_POD = pod("web", "2", memory="1Gi", scheduler="default-scheduler")


def _decision_and_logs(verbosity: int) -> tuple[Decision, list[Any]]:
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
    _, logs = _decision_and_logs(4)
    _, line = logs
    assert (line["event"], line["pod"], line["node"]) == ("node had untolerated taints", "default/web", "taken")
    assert line["detail"] == "untolerated taint team=a:NoSchedule"


def test_from_6_on_each_rejection_is_told() -> None:
    _, logs = _decision_and_logs(6)
    rejections = {entry["node"]: entry for entry in logs if entry["event"] == "Plugin rejected node for pod"}
    assert {name: rejection["plugin"] for name, rejection in rejections.items()} == {
        "small": "NodeResourcesFit",
        "taken": "TaintToleration",
    }
    assert rejections["small"]["reason"] == "Insufficient cpu"
    assert not [entry for entry in logs if "score" in entry]


def test_from_10_on_each_score_is_told_and_the_decision_is_the_same() -> None:
    decision, logs = _decision_and_logs(10)
    assert decision == _decision_and_logs(0)[0]
    by_plugin = [entry for entry in logs if entry["event"] == "Plugin scored node for pod"]
    final = {
        entry["node"]: entry["score"] for entry in logs if entry["event"] == "Calculated node's final score for pod"
    }
    assert set(final) == {"a", "b"}
    for name, total in final.items():
        assert sum(entry["score"] for entry in by_plugin if entry["node"] == name) == total
    assert {entry["plugin"] for entry in by_plugin} >= {"NodeResourcesFit", "TaintToleration"}


def _decision_with_extenders(verbosity: int, *answers: Any) -> tuple[Decision, list[Any]]:
    """With extenders, those that score answering this."""
    scoring = [Extender(f"http://s{number}", prioritize_verb="p", weight=2) for number, _ in enumerate(answers)]
    filtering = [Extender("http://me:secret@filters", filter_verb="f")]
    config = replace(default_configuration(), extenders=(*scoring, *filtering))
    cluster = Cluster(config, ObjectStore.of([node("a", "4"), node("b", "8"), _POD]))
    web = cluster.read_pod(_POD)
    extenders = Extenders(config.extenders, Random(1))
    engine = replace(cluster.engine, extenders=extenders, explainer=explainer_for(verbosity))
    steps = engine.attempt(engine.cycle(cluster.framework_for(web), web))
    with capture_logs() as logs:
        try:
            question = next(steps)
            while True:
                names = tuple(node.name for node in question.nodes)
                is_filter = isinstance(question, AskFilter)
                question = steps.send(Filtered(names, {}, {}) if is_filter else Scored(answers))
        except StopIteration as end:
            return end.value, logs


def test_from_10_on_each_score_of_each_extender_is_told_before_its_weight() -> None:
    answers = ([("a", 7), ("elsewhere", 3)], ExtenderFailed(Extender("http://s1"), "down"))
    decision, logs = _decision_with_extenders(10, *answers)
    assert decision == _decision_with_extenders(9, *answers)[0]
    score_entries = [entry for entry in logs if entry["event"] == "Extender scored node for pod"]
    assert [(entry["extender"], entry["node"], entry["score"]) for entry in score_entries] == [
        ("http://filters", "a", 0),
        ("http://filters", "b", 0),
        ("http://s0", "a", 7),
        ("http://s0", "elsewhere", 3),
    ]
    assert {entry["pod"] for entry in score_entries} == {"default/web"}
    final = {
        entry["node"]: entry["score"] for entry in logs if entry["event"] == "Calculated node's final score for pod"
    }
    by_plugin = [entry for entry in logs if entry["event"] == "Plugin scored node for pod" and entry["node"] == "a"]
    assert final["a"] == sum(entry["score"] for entry in by_plugin) + 7 * 2 * 10
    assert not [entry for entry in _decision_with_extenders(9, *answers)[1] if "score" in entry]


@pytest.mark.parametrize("verbosity", [4, 6, 10])
def test_the_attempt_itself_is_told_first(verbosity: int) -> None:
    _, logs = _decision_and_logs(verbosity)
    assert logs[0] == {
        "event": "Attempting to schedule pod",
        "pod": "default/web",
        "component": "scheduler",
        "log_level": "debug",
    }
