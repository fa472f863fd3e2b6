from __future__ import annotations

from typing import Any

import pytest

from podium.config.args import NodeAffinityArgs
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.filter import PreFilterResult
from podium.framework.contract.status import SKIP, Code, unresolvable
from podium.objects.core import Node, Pod
from podium.plugins.node_affinity import NodeAffinity
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import STATE, RecordingHandle, filter_nodes, normalize, score_nodes

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_SELECTED = unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")


def plugin(affinity: dict[str, Any] | None = None) -> NodeAffinity:
    return NodeAffinity(NodeAffinityArgs(affinity), RecordingHandle())


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def name_term(*names: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", "In", *names)]}


def requiring(*terms: dict[str, Any], **spec: Any) -> Pod:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}, spec=spec)


def preferring(*weighted_terms: tuple[int, dict[str, Any]]) -> Pod:
    terms = [{"weight": weight, "preference": term} for weight, term in weighted_terms]
    return pod(affinity={"nodeAffinity": {PREFERRED: terms}})


CLUSTER = snapshot_of(
    node("a", labels={"zone": "1", "gen": "7"}),
    node("b", labels={"zone": "2", "gen": "10"}),
    node("c", labels={"zone": "", "gen": "new"}),
    node("d"),
)


def passing(pod: Pod, affinity: dict[str, Any] | None = None) -> str:
    return "".join(sorted(set("abcd") - set(filter_nodes(plugin(affinity), pod, CLUSTER))))


@pytest.mark.parametrize(
    ("term", "matching"),
    [
        (labels(expression("zone", "In", "1", "2")), "ab"),
        (labels(expression("zone", "NotIn", "1")), "bcd"),
        (labels(expression("zone", "Exists")), "abc"),
        (labels(expression("zone", "DoesNotExist")), "d"),
        (labels(expression("gen", "Gt", "7")), "b"),
        (labels(expression("gen", "Lt", "10")), "a"),
        (labels(expression("zone", "Exists"), expression("gen", "Gt", "0")), "ab"),
        (labels(expression("gen", "Gt", "x")), ""),
        (labels(expression("zone", "Like", "1")), ""),
        (name_term("b"), "b"),
        (name_term("nobody"), ""),
        (name_term("a", "b"), ""),
        ({"matchFields": [expression("metadata.name", "NotIn", "b")]}, "acd"),
        ({"matchFields": [expression("metadata.uid", "NotIn", "b")]}, "abcd"),
        ({**name_term("a"), **labels(expression("zone", "In", "2"))}, ""),
        ({}, ""),
    ],
)
def test_a_term_matches_by_all_of_its_requirements(term: dict[str, Any], matching: str) -> None:
    assert passing(requiring(term)) == matching


def test_terms_are_alternatives_and_a_broken_one_leaves_the_others() -> None:
    malformed_term = labels(expression("zone", "In"))
    assert passing(requiring(labels(expression("zone", "In", "1")), labels(expression("zone", "In", "2")))) == "ab"
    assert passing(requiring(malformed_term, labels(expression("zone", "In", "2")))) == "b"
    assert passing(requiring()) == ""


def test_the_node_selector_and_the_affinity_must_both_match() -> None:
    assert passing(pod(spec={"nodeSelector": {"zone": "1"}})) == "a"
    assert passing(requiring(labels(expression("gen", "Exists")), nodeSelector={"zone": ""})) == "c"
    assert filter_nodes(plugin(), pod(spec={"nodeSelector": {"zone": "1", "gen": "8"}}), CLUSTER)["a"] == NOT_SELECTED


def test_added_affinity_comes_first() -> None:
    affinity = {REQUIRED: {"nodeSelectorTerms": [labels(expression("zone", "In", "1", "2"))]}}
    answers = filter_nodes(plugin(affinity), pod(spec={"nodeSelector": {"zone": "1"}}), CLUSTER)
    assert answers == {"b": NOT_SELECTED, "c": NOT_ENFORCED, "d": NOT_ENFORCED}


def test_it_is_skipped_where_nobody_demands_anything() -> None:
    affinity = {REQUIRED: {"nodeSelectorTerms": [labels(expression("zone", "Exists"))]}}
    assert plugin().pre_filter(STATE, pod(), CLUSTER) == (None, SKIP)
    assert plugin().pre_filter(STATE, preferring((1, name_term("a"))), CLUSTER) == (None, SKIP)
    assert plugin(affinity).pre_filter(STATE, pod(), CLUSTER) == (None, None)
    assert plugin().pre_filter(STATE, pod(spec={"nodeSelector": {"a": "b"}}), CLUSTER) == (None, None)
    assert plugin().pre_filter(STATE, requiring(), CLUSTER) == (None, None)


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([name_term("a")], {"a"}),
        ([name_term("a"), name_term("b")], {"a", "b"}),
        ([name_term("a"), labels(expression("zone", "Exists"))], None),
    ],
)
def test_names_narrow_the_nodes_down(terms: list[dict[str, Any]], names: set[str] | None) -> None:
    result, status = plugin().pre_filter(STATE, requiring(*terms), CLUSTER)
    assert status is None
    assert result == (None if names is None else PreFilterResult(frozenset(names)))


def test_names_that_exclude_each_other_reject_the_pod() -> None:
    term = {"matchFields": [expression("metadata.name", "In", name) for name in "ab"]}
    result, status = plugin().pre_filter(STATE, requiring(term), CLUSTER)
    assert (result, status) == (None, unresolvable("pod affinity terms conflict"))


def test_weights_of_matching_preferences_add_up() -> None:
    wishful = preferring(
        (5, labels(expression("zone", "Exists"))),
        (10, labels(expression("gen", "Gt", "7"))),
        (0, labels(expression("zone", "Exists"))),
        (50, {}),
    )
    assert plugin().pre_score(STATE, wishful, CLUSTER, CLUSTER.order) is None
    assert score_nodes(plugin(), wishful, CLUSTER) == {"a": 5, "b": 15, "c": 5, "d": 0}
    assert normalize(plugin(), wishful, CLUSTER) == {"a": 33, "b": 100, "c": 33, "d": 0}


def test_added_preferences_count_for_every_pod() -> None:
    affinity = {PREFERRED: [{"weight": 2, "preference": labels(expression("zone", "In", "1"))}]}
    assert plugin(affinity).pre_score(STATE, pod(), CLUSTER, CLUSTER.order) is None
    assert score_nodes(plugin(affinity), preferring((3, name_term("a"))), CLUSTER) == {"a": 5, "b": 0, "c": 0, "d": 0}


def test_scoring_is_skipped_without_preferences_and_fails_on_a_broken_one() -> None:
    assert plugin().pre_score(STATE, requiring(name_term("a")), CLUSTER, CLUSTER.order) is SKIP
    status = plugin().pre_score(STATE, preferring((1, labels(expression("zone", "In")))), CLUSTER, CLUSTER.order)
    assert status is not None
    assert status.code is Code.ERROR
    assert "preference.matchExpressions[0].values" in status.message


def test_labels_that_change_are_seen_by_the_next_attempt() -> None:
    snapshot = snapshot_of(node("a"))
    choosy = pod(spec={"nodeSelector": {"disk": "ssd"}})
    assert set(filter_nodes(plugin(), choosy, snapshot)) == {"a"}
    snapshot.put_node(node("a", labels={"disk": "ssd"}), {}, 1)
    assert filter_nodes(plugin(), choosy, snapshot) == {}


ZONE_1, ZONE_2, NO_ZONE = node("n", labels={"zone": "1"}), node("n", labels={"zone": "2"}), node("n")


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, ZONE_1, QueueingHint.QUEUE),
        (None, NO_ZONE, QueueingHint.SKIP),
        (NO_ZONE, ZONE_1, QueueingHint.QUEUE),
        (ZONE_1, ZONE_1, QueueingHint.SKIP),
        (ZONE_1, NO_ZONE, QueueingHint.SKIP),
    ],
)
def test_a_node_helps_when_it_comes_to_match(old: Node | None, new: Node, hint: QueueingHint) -> None:
    assert plugin().after_node_change(pod(spec={"nodeSelector": {"zone": "1"}}), old, new) is hint


def test_added_affinity_is_held_against_the_new_node_only() -> None:
    affinity = {REQUIRED: {"nodeSelectorTerms": [labels(expression("zone", "In", "1"))]}}
    assert plugin(affinity).after_node_change(pod(), None, ZONE_2) is QueueingHint.SKIP
    assert plugin(affinity).after_node_change(pod(), ZONE_2, ZONE_1) is QueueingHint.SKIP
    assert plugin(affinity).after_node_change(pod(), None, ZONE_1) is QueueingHint.QUEUE


def test_it_registers_for_nodes_and_their_labels() -> None:
    (registration,) = plugin().events_to_register()
    assert int(registration.event.action) == 1 | 8
