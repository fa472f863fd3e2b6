from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from podium.binder.extenders.wire import (
    WireError,
    binding_args,
    filter_args,
    preemption_args,
    read_bound,
    read_filtered,
    read_preemptable,
    read_scores,
)
from podium.config import Extender
from podium.framework.contract.questions import AskFilter, AskPreempt, ExtenderFailed, Filtered, Preemptable, Victims
from podium.objects.core import Node, Pod
from podium.objects.objects_with_json import node_with_json, pod_with_json
from tests.builders import snapshot_of

PLAIN = Extender("http://x", weight=1)
CAPABLE = Extender("http://x", weight=1, node_cache_capable=True)


def raw_pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}"}, "spec": {"dnsPolicy": "Default", **spec}}


def raw_node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"architecture": "arm64"}}}


def a_pod(name: str = "web", **spec: Any) -> Pod:
    content = json.dumps(raw_pod(name, **spec)).encode()
    return pod_with_json(msgspec.json.decode(content, type=Pod), content)


def a_node(name: str) -> Node:
    content = json.dumps(raw_node(name)).encode()
    return node_with_json(msgspec.json.decode(content, type=Node), content)


NODES = [a_node("n0"), a_node("n1")]


def read_filter_answer(answer: Any, extender: Extender = CAPABLE) -> Filtered | ExtenderFailed:
    return read_filtered(AskFilter(extender, a_pod(), NODES), json.dumps(answer).encode())


# ---------------------------------------------------------------- questions


def test_extender_without_a_node_cache_is_sent_pod_and_nodes_whole():
    assert json.loads(filter_args(PLAIN, a_pod(), NODES)) == {
        "Pod": raw_pod("web"),
        "Nodes": {"metadata": {}, "items": [raw_node("n0"), raw_node("n1")]},
        "NodeNames": None,
    }


def test_extender_with_a_node_cache_is_sent_names():
    body = json.loads(filter_args(CAPABLE, a_pod(), NODES))
    assert body == {"Pod": raw_pod("web"), "Nodes": None, "NodeNames": ["n0", "n1"]}


def test_victims_are_sent_whole_or_by_uid():
    victim = a_pod("old", nodeName="n0")
    candidates = {"n0": Victims((victim,), 1)}
    plain = json.loads(preemption_args(AskPreempt(PLAIN, a_pod(), candidates, snapshot_of())))
    assert plain == {
        "Pod": raw_pod("web"),
        "NodeNameToVictims": {"n0": {"Pods": [raw_pod("old", nodeName="n0")], "NumPDBViolations": 1}},
        "NodeNameToMetaVictims": None,
    }
    capable = json.loads(preemption_args(AskPreempt(CAPABLE, a_pod(), candidates, snapshot_of())))
    assert capable == {
        "Pod": raw_pod("web"),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "u-old"}], "NumPDBViolations": 1}},
    }


def test_binding_is_asked_for_by_name_and_uid():
    assert json.loads(binding_args(a_pod(), "n1")) == {
        "PodName": "web",
        "PodNamespace": "ns",
        "PodUID": "u-web",
        "Node": "n1",
    }


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    "answer",
    [
        {"NodeNames": ["n1"], "FailedNodes": {"n0": "busy"}, "FailedAndUnresolvableNodes": {"n0": "old"}},
        {"nodenames": ["n1"], "failedNodes": {"n0": "busy"}, "failedAndUnresolvableNodes": {"n0": "old"}, "Error": ""},
    ],
)
def test_names_of_fields_are_read_in_any_case(answer):
    assert read_filter_answer(answer) == Filtered(("n1",), {"n0": "busy"}, {"n0": "old"})


def test_nodes_that_are_sent_back_count_by_their_names():
    assert read_filter_answer({"Nodes": {"items": [raw_node("n1")]}}, PLAIN) == Filtered(("n1",), {}, {})


def test_names_go_before_nodes_only_for_extenders_with_a_node_cache():
    answer = {"NodeNames": ["n0"], "Nodes": {"items": [raw_node("n1")]}}
    assert read_filter_answer(answer, CAPABLE) == Filtered(("n0",), {}, {})
    assert read_filter_answer(answer, PLAIN) == Filtered(("n1",), {}, {})
    assert read_filter_answer({"NodeNames": None, "Nodes": {"items": [raw_node("n1")]}}) == Filtered(("n1",), {}, {})


@pytest.mark.parametrize("answer", [{}, None, {"Nodes": None}, {"Nodes": {"items": None}}, {"NodeNames": []}])
def test_answer_without_nodes_lets_none_through(answer):
    assert read_filter_answer(answer) == Filtered((), {}, {})


def test_error_in_an_answer_is_a_failure_whatever_else_it_says():
    assert read_filter_answer({"NodeNames": ["n1"], "Error": "no licence"}) == ExtenderFailed(CAPABLE, "no licence")
    assert read_bound(PLAIN, b'{"error": "no licence"}') == ExtenderFailed(PLAIN, "no licence")


@pytest.mark.parametrize("answer", ["{}", '{"Error": ""}', "null"])
def test_binding_without_an_error_is_done(answer):
    assert read_bound(PLAIN, answer.encode()) is None


def test_scores_are_read_in_any_case_and_order():
    answer = [{"Host": "n0", "Score": 3}, {"score": 4, "host": "n1"}, {"host": "n2"}]
    assert read_scores(PLAIN, json.dumps(answer).encode()) == [("n0", 3), ("n1", 4), ("n2", 0)]
    assert read_scores(PLAIN, b"null") == []


def test_victims_are_read_by_uid():
    old = a_pod("old", nodeName="n0")
    snapshot = snapshot_of(a_node("n0"), old)
    question = AskPreempt(CAPABLE, a_pod(), {}, snapshot)
    answer = b'{"nodeNameToMetaVictims": {"n0": {"Pods": [{"uid": "u-old"}], "NumPDBViolations": 2}}}'
    assert read_preemptable(question, answer) == Preemptable({"n0": Victims((old,), 2)})
    assert read_preemptable(question, b"{}") == Preemptable({})
    missing = read_preemptable(question, b'{"NodeNameToMetaVictims": {"n0": null}}')
    assert missing == ExtenderFailed(CAPABLE, 'expected at least one victim pod on node "n0"')


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        (lambda body: read_filter_answer(json.loads(body)), '{"NodeNames": "n0"}'),
        (lambda body: read_filter_answer(json.loads(body)), '{"FailedNodes": ["n0"]}'),
        (lambda body: read_filter_answer(json.loads(body)), "[]"),
        (lambda body: read_bound(PLAIN, body), "oops"),
        (lambda body: read_bound(PLAIN, body), ""),
        (lambda body: read_scores(PLAIN, body), '{"Host": "n0"}'),
        (lambda body: read_scores(PLAIN, body), '[{"Host": "n0", "Score": "3"}]'),
        (lambda body: read_scores(PLAIN, body), '[{"Host": "n0", "Score": 3.5}]'),
        (lambda body: read_scores(PLAIN, body), '[{"Host": "n0", "Score": true}]'),
        (lambda body: read_scores(PLAIN, body), '[{"Host": "n0", "Score": 18446744073709551616}]'),
        (lambda body: read_scores(PLAIN, body), '[{"Host": 1, "Score": 3}]'),
        (lambda body: read_scores(PLAIN, body), b'[{"Host": "\xff", "Score": 3}]'),
        (
            lambda body: read_preemptable(AskPreempt(PLAIN, a_pod(), {}, snapshot_of()), body),
            '{"NodeNameToMetaVictims": {"n0": {"Pods": {}}}}',
        ),
    ],
)
def test_answer_of_another_shape_is_an_error(read, answer):
    with pytest.raises(WireError):
        read(answer if isinstance(answer, bytes) else answer.encode())
