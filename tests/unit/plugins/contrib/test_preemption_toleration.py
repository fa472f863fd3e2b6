"""PreemptionToleration: which pods are spared, for how long, and against whom."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework.contract.status import PluginError
from podium.framework.profile.plugin_args import typed_args
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.times import parse_time
from podium.objects.workloads import PriorityClass
from podium.plugins.contrib.preemption_toleration import (
    MINIMUM_PRIORITY,
    TOLERATION_SECONDS,
    PreemptionToleration,
    tolerates,
)
from podium.testing import RecordingHandle, check_contract
from tests.builders import pod as typed_pod
from tests.builders import snapshot_of
from tests.unit.plugins.contrib.questions import NOW, answer, node, pod, profile

PLUGINS = {"postFilter": {"enabled": [{"name": "PreemptionToleration"}], "disabled": [{"name": "*"}]}}
NOW_S = parse_time(NOW)
MINUTE_AGO = "2026-06-01T11:59:00Z"


def scheduled_status(since: str | None, status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": status, "lastTransitionTime": since}]}


def priority_class(minimum: str | None = None, seconds: str | None = None, value: int = 100) -> PriorityClass:
    annotations = {MINIMUM_PRIORITY: minimum, TOLERATION_SECONDS: seconds}
    present_annotations = {key: text for key, text in annotations.items() if text is not None}
    return PriorityClass(metadata=ObjectMeta(name="batch", annotations=present_annotations), value=value)


def victim(status: dict[str, Any] | None = None) -> Pod:
    return typed_pod(
        "victim", node="n1", priority=100, status=scheduled_status(MINUTE_AGO) if status is None else status
    )


def test_it_keeps_the_contract() -> None:
    check_contract(PreemptionToleration)


@pytest.mark.parametrize(
    ("minimum", "seconds", "is_spared"),
    [
        (None, "-1", False),
        (None, None, False),
        ("8000", None, False),
        ("8000", "0", False),
        ("8000", "-1", True),
        ("8000", "60", False),
        ("8000", "61", True),
        ("8000", "9223372036854775807", True),
        ("5000", "-1", False),
        ("5001", "-1", True),
        ("-5", "-1", False),
        ("+8000", "-1", True),
        ("x", "-1", False),
        ("2147483648", "-1", False),
        ("8000", "soon", False),
        ("8000", "9223372036854775808", False),
    ],
)
def test_a_pod_is_spared_for_its_seconds_from_pods_below_the_minimum(
    minimum: str | None, seconds: str | None, *, is_spared: bool
) -> None:
    assert tolerates(victim(), priority_class(minimum, seconds), 5000, NOW_S) is is_spared


@pytest.mark.parametrize("status", [{}, scheduled_status(MINUTE_AGO, "False")])
def test_a_pod_that_is_not_known_to_be_scheduled_is_spared_even_with_no_seconds(status: dict[str, Any]) -> None:
    assert tolerates(victim(status), priority_class("8000", "0"), 5000, NOW_S)
    assert not tolerates(victim(status), priority_class("4000", "0"), 5000, NOW_S)


@pytest.mark.parametrize("since", [None, "yesterday"])
def test_a_condition_without_a_time_began_long_ago(since: str | None) -> None:
    assert not tolerates(victim(scheduled_status(since)), priority_class("8000", "60"), 5000, NOW_S)


def classes(**annotations: str) -> list[dict[str, Any]]:
    keys = {"minimum": MINIMUM_PRIORITY, "seconds": TOLERATION_SECONDS}
    metadata = {"name": "batch", "annotations": {keys[name]: text for name, text in annotations.items()}}
    return [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 100}]


def running(name: str, on: str, **fields: Any) -> dict[str, Any]:
    fields = {
        "cpu": "4",
        "priority": 100,
        "priorityClassName": "batch",
        "status": scheduled_status(MINUTE_AGO),
        **fields,
    }
    return pod(name, on=on, **fields)


URGENT = pod("urgent", cpu="4", priority=5000)


def answer_for(*objects: dict[str, Any], incoming: dict[str, Any] = URGENT, **args: Any) -> dict[str, Any]:
    return answer(profile(PLUGINS, PreemptionToleration=args), objects, incoming)


def test_a_pod_that_tolerates_is_no_victim_and_the_other_node_is_chosen() -> None:
    cluster = [*classes(minimum="8000", seconds="600"), node("a"), node("b"), running("spared", "a")]
    result = answer_for(*cluster, running("plain", "b", priorityClassName=""))
    assert (result["nominated"], result["victims"]) == ("b", ["default/plain"])


def test_without_victims_every_node_is_named() -> None:
    cluster = [*classes(minimum="8000", seconds="-1"), node("a"), node("b"), running("spared", "a")]
    result = answer_for(*cluster, running("higher", "b", priority=5000))
    nodes = ", ".join(f"1 No victims found on node {name} for preemptor pod urgent" for name in "ab")
    assert result["postfilter"]["reasons"] == [f"0/2 nodes are available: {nodes}."]


def test_a_pod_whose_class_is_gone_makes_its_node_unusable_and_is_named_if_there_is_no_other() -> None:
    orphan = running("lost", "a", priorityClassName="gone")
    result = answer_for(node("a"), orphan)
    assert result["postfilter"]["code"] == "Error"
    assert result["postfilter"]["reasons"] == ['priorityclass.scheduling.k8s.io "gone" not found']
    answer = answer_for(node("a"), node("b"), orphan, running("plain", "b", priorityClassName=""))
    assert (answer["nominated"], answer["victims"]) == ("b", ["default/plain"])


@pytest.mark.parametrize("extra", [{}, {"hostPort": 80}])
def test_both_ways_of_trying_nodes_spare_the_same_pods(extra: dict[str, int]) -> None:
    """A pod with a host port is tried node by node, since its filter looks at the pods."""
    ports = [{"containerPort": 80, **extra}] if extra else []
    container = {"name": "app", "resources": {"requests": {"cpu": "4"}}, "ports": ports}
    incoming = pod("urgent", priority=5000) | {"spec": {"priority": 5000, "containers": [container]}}
    cluster = [*classes(minimum="8000", seconds="-1"), node("a"), running("spared", "a", cpu="2")]
    cluster.append(running("plain", "a", cpu="2", priorityClassName=""))
    result = answer_for(*cluster, incoming=incoming)
    assert result["postfilter"]["reasons"] == ["0/1 nodes are available: 1 Insufficient cpu."]
    answer = answer_for(node("a"), running("lost", "a", priorityClassName="gone"), incoming=incoming)
    assert answer["postfilter"]["reasons"] == ['priorityclass.scheduling.k8s.io "gone" not found']


def test_it_notes_which_classes_are_spared_and_which_cannot_be_read() -> None:
    classes = {
        "ever": priority_class("8000", "-1"),
        "hour": priority_class("8000", "3600"),
        "broken": priority_class("8000", "soon"),
        "absurd": priority_class(str(2**31), "1"),
        "plain": priority_class(),
        "at-once": priority_class("8000", "0"),
    }
    named = [replace(item, metadata=replace(item.metadata, name=name)) for name, item in classes.items()]
    plugin = PreemptionToleration(typed_args(PreemptionToleration, None), RecordingHandle(snapshot_of(), named))
    bits = "an integer of %d bits, so its pods are not spared"
    assert plugin.notes() == [
        f"PriorityClass absurd: metadata.annotations[{MINIMUM_PRIORITY}]: 2147483648 is not {bits % 32}",
        f"PriorityClass broken: metadata.annotations[{TOLERATION_SECONDS}]: soon is not {bits % 64}",
        "pods of ever are spared from priorities below 8000",
        "pods of hour are spared from priorities below 8000 for 3600 s after they were scheduled",
    ]


def test_a_pod_that_never_preempts_is_told_so() -> None:
    never = pod("urgent", cpu="4", priority=5000, preemptionPolicy="Never")
    result = answer_for(node("a"), running("plain", "a", priorityClassName=""), incoming=never)
    assert result["postfilter"]["reasons"] == ["not eligible due to preemptionPolicy=Never."]


def test_the_pod_waits_for_any_terminating_pod_of_lower_priority_on_its_nominated_node() -> None:
    leaving = running("leaving", "a", priorityClassName="")
    leaving["metadata"] |= {"deletionTimestamp": NOW}
    incoming = pod("urgent", cpu="4", priority=5000, status={"nominatedNodeName": "a"})
    result = answer_for(node("a"), leaving, incoming=incoming)
    assert result["postfilter"]["reasons"] == ["not eligible due to a terminating pod on the nominated node."]


def test_a_node_that_no_eviction_helps_is_not_tried() -> None:
    result = answer_for(node("a", cpu="2"), running("plain", "a", cpu="1", priorityClassName=""))
    assert result["postfilter"]["reasons"] == ["0/1 nodes are available: 1 Preemption is not helpful for scheduling."]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, ",
        ),
        (
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "cannot be zero at the same time as minCandidateNodesAbsolute",
        ),
        ({"minCandidateNodes": 1}, "args.minCandidateNodes: unknown field"),
    ],
)
def test_args_that_upstream_refuses_are_refused_in_its_words(args: Any, error: str) -> None:
    with pytest.raises(PluginError) as raised:
        typed_args(PreemptionToleration, args)
    assert error in str(raised.value)
