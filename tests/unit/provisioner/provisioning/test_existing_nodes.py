"""Pods on existing nodes, and on nodes that are being launched."""

from __future__ import annotations

import pytest

from tests.unit.provisioner.clusters import (
    ZONE,
    Document,
    managed_node,
    node,
    node_affinity,
    node_claim,
    plan,
    pod,
    requirement,
)

TAINT = {"key": "gpu", "effect": "NoSchedule"}


def existing(*objects: Document) -> Document:
    return dict(plan(*objects)["existing"])


def test_nodes_are_tried_by_name_those_that_are_ready_first() -> None:
    early = managed_node("a-node", initialized=False)
    assert existing(node("b"), node("c"), pod("a")) == {"b": ["default/a"]}
    assert existing(early, node_claim(), node("b"), pod("a")) == {"b": ["default/a"]}


def test_a_node_on_its_way_takes_pods() -> None:
    assert existing(node_claim(), pod("a")) == {"claim-1": ["default/a"]}


def test_a_node_takes_pods_until_it_is_full() -> None:
    answer = plan(node(cpu="3"), *(pod(f"p{index}") for index in range(4)))
    assert len(answer["existing"]["node-1"]) == 3
    assert len(answer["claims"]) == 1


@pytest.mark.parametrize(
    "pod_fields",
    [
        {"nodeSelector": {"team": "x"}},
        {"affinity": node_affinity(requirement(ZONE, "In", "zone-2"))},
        {"cpu": "5"},
    ],
)
def test_a_node_that_does_not_fit_takes_nothing(pod_fields: Document) -> None:
    assert existing(node(zone="zone-1"), pod("a", **pod_fields)) == {}


def test_taints_must_be_tolerated() -> None:
    assert existing(node(taints=[TAINT]), pod("a")) == {}
    assert existing(node(taints=[TAINT]), pod("a", tolerations=[{"key": "gpu", "operator": "Exists"}])) != {}


def test_an_overcommitted_node_takes_nothing() -> None:
    cluster = [node(cpu="1"), pod("big", cpu="2", node="node-1")]
    assert existing(*cluster, pod("a", cpu="0")) == {}


def test_a_label_that_the_pod_does_not_want_may_be_absent() -> None:
    absent = node_affinity(requirement("team", "NotIn", "x"))
    assert existing(node(), pod("a", affinity=absent)) == {"node-1": ["default/a"]}
