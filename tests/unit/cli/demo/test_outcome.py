from __future__ import annotations

import pytest

from podium.cli.demo.outcome import assess, pods_per_zone, why_unschedulable
from tests.builders import node, pod

UNSCHEDULABLE = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    ]
}
GATED = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "is gated"}]
}
NODES = [
    node("n1", cpu="4", memory="8Gi", zone="zone-a", labels={"node.kubernetes.io/instance-type": "small"}),
    node("n2", cpu="4", memory="8Gi", zone="zone-b"),
    node("n3", cpu="4", memory="8Gi", zone="zone-b"),
]


def test_how_full_a_node_is_follows_from_the_requests_of_its_pods() -> None:
    pods = [pod("a", cpu="1", memory="1Gi", node="n1"), pod("b", cpu="1", memory="1Gi", node="n1")]
    first, second, _ = assess(NODES, pods, (), 1.0).nodes
    assert (first.name, first.instance_type, first.pods) == ("n1", "small", 2)
    assert (first.cpu, first.memory) == (pytest.approx(0.5), pytest.approx(0.25))
    assert (second.pods, second.cpu, second.memory) == (0, 0, 0)


def test_pods_are_counted_by_zone_empty_ones_included() -> None:
    pods = [pod("a", node="n2"), pod("b", node="n3")]
    assert pods_per_zone(assess(NODES, pods, (), 1.0).nodes) == [("zone-a", 1, 0), ("zone-b", 2, 2)]


def test_it_is_a_success_when_what_fits_is_bound_and_the_rest_is_reported() -> None:
    pods = [pod("a", node="n1"), pod("b", node="n1"), pod("big", status=UNSCHEDULABLE)]
    outcome = assess(NODES, pods, {"big"}, 0.5)
    assert outcome.is_success
    assert outcome.unschedulable == (("big", "0/2 nodes are available"),)
    assert outcome.summary() == {
        "nodes": 3,
        "pods": 2,
        "bound": 2,
        "unschedulable": 1,
        "duration_s": 0.5,
        "pods_per_s": 4.0,
    }


def test_an_unbound_pod_that_fits_is_no_success_even_if_it_was_reported() -> None:
    outcome = assess(NODES, [pod("a", node="n1"), pod("b", status=UNSCHEDULABLE)], (), 1.0)
    assert not outcome.is_success
    assert (outcome.bound_count, outcome.unbound) == (1, ("b",))


def test_a_pod_that_cannot_fit_but_is_bound_is_no_success() -> None:
    outcome = assess(NODES, [pod("a", node="n1"), pod("big", node="n1")], {"big"}, 1.0)
    assert not outcome.is_success
    assert (outcome.bound_count, outcome.misreported, outcome.unschedulable) == (1, ("big",), ())


def test_a_pod_that_cannot_fit_but_was_not_reported_is_no_success() -> None:
    outcome = assess(NODES, [pod("a", node="n1"), pod("big")], {"big"}, 1.0)
    assert outcome.misreported == ("big",)


def test_no_rate_where_no_time_has_passed() -> None:
    assert assess(NODES, [pod("a")], (), 0.0).pods_per_s == 0.0


def test_only_the_reason_unschedulable_counts_and_only_while_the_pod_has_no_node() -> None:
    assert why_unschedulable(pod("a", status=UNSCHEDULABLE)) == "0/2 nodes are available"
    assert why_unschedulable(pod("a", status=UNSCHEDULABLE, node="n1")) is None
    assert why_unschedulable(pod("a", status=GATED)) is None
    assert why_unschedulable(pod("a")) is None
