import json
from functools import partial

import pytest

from podium.insight.evaluate import Evaluator
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from tests import manifests

node = partial(manifests.node, cpu="4")
pod = partial(manifests.pod, cpu="1", scheduler=None)

CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def _answer(**scenario):
    return Evaluator().answer_line(json.dumps({"id": "s-1", **scenario}).encode(), "file:1")


def test_pod_is_tried_on_every_node():
    cordoned, small = node("n2", unschedulable=True), node("n3", cpu="500m")
    answer = _answer(objects=[cordoned, small, node("n1"), pod("other", node="n1")], pod=pod("web"))
    assert answer["id"] == "s-1"
    assert answer["prefilter"] == {"code": "Success"}
    assert answer["filter"] == {
        "n2": {
            "code": "UnschedulableAndUnresolvable",
            "plugin": "NodeUnschedulable",
            "reasons": ["node(s) were unschedulable"],
        },
        "n3": {
            "code": "UnschedulableAndUnresolvable",
            "plugin": "NodeResourcesFit",
            "reasons": ["Insufficient cpu"],
        },
    }
    assert answer["feasible"] == ["n1"]
    scores = answer["scores"]["n1"]
    assert scores["total"] == sum(scores["plugins"].values()) > 0
    assert "fit_error" not in answer


def test_pod_that_fits_nowhere_has_reasons_and_the_verdict_of_preemption():
    answer = _answer(objects=[node("n1")], pod=pod("web", cpu="9"))
    assert answer["feasible"] == []
    assert "scores" not in answer
    assert answer["fit_error"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert answer["message"].startswith(f"{answer['fit_error']} ")
    assert answer["postfilter"]["code"] == "Unschedulable"


def test_preemption_names_node_and_victims():
    objects = [node("n1"), pod("b", cpu="2", node="n1"), pod("a", cpu="2", node="n1")]
    answer = _answer(objects=objects, pod=pod("web", cpu="4", priority=10))
    assert (answer["postfilter"], answer["nominated"]) == ({"code": "Success"}, "n1")
    assert answer["victims"] == ["default/a", "default/b"]
    assert answer["message"] == answer["fit_error"]


def test_promised_room_is_kept_for_a_pod_that_names_its_scheduler():
    promised = pod("first", cpu="3", status={"nominatedNodeName": "n1"}, priority=5)
    nominated_pod = {**promised, "spec": {**promised["spec"], "schedulerName": "default-scheduler"}}
    assert _answer(objects=[node("n1"), promised], pod=pod("web", cpu="2"))["feasible"] == ["n1"]
    assert _answer(objects=[node("n1"), nominated_pod], pod=pod("web", cpu="2"))["feasible"] == []


def test_pods_of_a_queue_see_those_before_them():
    answer = _answer(objects=[node("n1", cpu="1"), node("n2", cpu="2")], pods=[pod("a"), pod("b"), pod("c"), pod("d")])
    nodes = [placement.get("node") for placement in answer["placements"]]
    assert sorted(nodes[:3]) == ["n1", "n2", "n2"]
    assert nodes[3] is None
    assert [placement["pod"] for placement in answer["placements"]] == [f"default/{name}" for name in "abcd"]


def test_pod_that_is_held_back_takes_no_room_in_a_queue():
    answer = _answer(objects=[node("n1", cpu="1")], pods=[pod("a", schedulingGates=[{"name": "hold"}]), pod("b")])
    assert answer["placements"] == [{"pod": "default/a"}, {"pod": "default/b", "node": "n1"}]


def test_victims_make_room_for_the_pods_behind():
    objects = [node("n1", cpu="2"), pod("low", cpu="2", node="n1")]
    answer = _answer(objects=objects, pods=[pod("high", cpu="1", priority=9), pod("next", cpu="1")])
    assert answer["placements"] == [{"pod": "default/high"}, {"pod": "default/next", "node": "n1"}]


def test_change_is_read_as_events_with_a_hint_from_every_plugin_concerned():
    old, new = node("n1", unschedulable=True), node("n1")
    event = {"action": "Update", "old": old, "new": new}
    answer = _answer(objects=[new], pod=pod("web"), event=event)
    assert answer["events"] == ["NodeUpdateNodeTaint"]
    hints = answer["hints"]["NodeUpdateNodeTaint"]
    assert (hints["NodeUnschedulable"], hints["NodePorts"], hints["TaintToleration"]) == ("Queue", "Queue", "Skip")
    assert "ImageLocality" not in hints


def test_configuration_of_the_question_is_used():
    disabled = {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}}
    config = {**CONFIG, "profiles": [{"schedulerName": "default-scheduler", "plugins": disabled}]}
    objects = [node("n1", unschedulable=True)]
    assert _answer(objects=objects, pod=pod("web"), config=config)["feasible"] == ["n1"]
    assert _answer(objects=objects, pod=pod("web"), config=None)["feasible"] == []


def test_same_question_has_the_same_answer():
    scenario = {"objects": [node(f"n{i}") for i in range(9)], "pods": [pod(f"p{i}") for i in range(20)]}
    assert _answer(**scenario) == _answer(**scenario)


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        ({"objects": [{"apiVersion": "v1", "kind": "Node"}], "pod": pod("a")}, "Node: metadata.name: required"),
        ({"objects": [], "pod": pod("a")}, "no nodes available to schedule pods"),
        ({"objects": [node("n1")]}, "Pod: expected an object, got NoneType"),
        (
            {"objects": [node("n1")], "pod": pod("a", scheduler="other")},
            "Pod default/a: spec.schedulerName: no profile is named 'other', only default-scheduler",
        ),
        (
            {"objects": [node("n1")], "pod": pod("a", cpu="x")},
            'Pod default/a: spec.containers[0].resources.requests[cpu]: "x" has the unknown suffix "x"',
        ),
        (
            {"objects": [node("n1", cpu="lots")], "pod": pod("a")},
            'Node n1: status.allocatable[cpu]: "lots" has the unknown suffix "lots"',
        ),
        (
            {"objects": [node("n1")], "pod": pod("a"), "config": {**CONFIG, "parallelism": -1}},
            "config: parallelism: Invalid value: -1: should be an integer value greater than zero",
        ),
        (
            {"objects": [node("n1")], "pod": pod("a"), "event": {"action": "Move"}},
            "event.action: expected Add, Update or Delete, got 'Move'",
        ),
        (
            {"objects": [node("n1")], "pod": pod("a"), "event": {"action": "Add", "new": {"kind": "Dog"}}},
            "event.new: expected an object of a kind that schedulers read",
        ),
    ],
)
def test_broken_question_is_answered_with_its_error(scenario, error):
    answer = _answer(**scenario)
    assert answer == {"id": "s-1", "error": answer["error"]}
    assert answer["error"].endswith(error)


@pytest.mark.parametrize("odd", [{"cpu": "lots"}, {"containers": 5}], ids=["a quantity", "a type"])
def test_a_node_with_a_pod_whose_requests_cannot_be_read_is_closed(odd):
    objects = [node("n1"), node("n2"), pod("odd", nodeName="n1", **odd)]
    answer = _answer(objects=objects, pod=pod("a"))
    assert answer["feasible"] == ["n2"]
    [reason] = answer["filter"]["n1"]["reasons"]
    assert reason.startswith("node(s) closed to new pods: a pod there has a field that cannot be read, spec.containers")


def test_extenders_are_refused_by_name():
    config = {**CONFIG, "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}]}
    assert "extenders" in _answer(objects=[node("n1")], pod=pod("a"), config=config)["error"]


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"id": []}', b"\xff", b'{"objects": 3}'])
def test_line_that_is_no_question_is_named_by_its_place(line):
    answer = Evaluator().answer_line(line, "file:7")
    assert answer["id"] == "file:7"
    assert answer["error"].startswith("not a scenario: ")


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ('device.attributes["gpu.example.com"].index > 2', {"matches": True}),
        ('device.capacity["gpu.example.com"].memory == quantity("1")', {"matches": False}),
        ("device.nope", {"error": "CEL compile error: 1:7: undefined field 'nope'"}),
        ('device.attributes["gpu.example.com"].nope', {"error": "CEL runtime error: no such key: nope"}),
    ],
)
def test_selector_is_asked_about_a_device(expression, answer):
    device = {"name": "d", "attributes": {"index": {"int": 3}}, "capacity": {"memory": {"value": "1Gi"}}}
    assert _answer(expression=expression, driver="gpu.example.com", device=device) == {"id": "s-1", **answer}


def test_device_that_cannot_be_read_is_an_error_that_names_the_attribute():
    answer = _answer(expression="true", driver="d", device={"attributes": {"odd": {}}})
    assert answer["error"] == "CEL runtime error: attribute odd: unsupported attribute value"


def _by_load(metrics):
    args = {"WatcherAddress": "WATCHER", "NodePowerModel": {"n1": {"k1": 1, "k2": 0.1}}}
    profile = {
        "plugins": {"score": {"enabled": [{"name": "Peaks"}]}},
        "pluginConfig": [{"name": "Peaks", "args": args}],
    }
    line = {"objects": [node("n1"), node("n2")], "pod": pod("web"), "config": {**CONFIG, "profiles": [profile]}}
    line |= {} if metrics is None else {"metrics": metrics}
    answer = Evaluator({**IN_TREE, **CONTRIB}).answer_line(json.dumps(line).encode(), "file:1")
    return answer.get("error") or {name: scores["plugins"]["Peaks"] for name, scores in answer["scores"].items()}


def test_metrics_stand_for_every_source():
    value = {"type": "CPU", "operator": "AVG", "value": 5}
    metrics = {"data": {"NodeMetricsMap": {name: {"metrics": [value]} for name in ("n1", "n2")}}}
    assert _by_load(metrics) == {"n1": 0, "n2": 100}
    assert _by_load(None) == {"n1": 0, "n2": 0}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "metrics: expected an object, got list"),
        ({"data": {"NodeMetricsMap": {"n1": {"metrics": [{"value": "high"}]}}}}, "value: expected"),
    ],
)
def test_metrics_that_cannot_be_read_are_refused(metrics, message):
    assert message in _by_load(metrics)
