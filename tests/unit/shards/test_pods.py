"""Tests for which member decides on a pod, and on which nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.objects.core import Pod, PodCondition
from podium.shards import OVERSEER
from podium.shards.pods import CONDITION, Role, Visits, owner_key, role_of, sees_all
from podium.shards.rendezvous import owner, ranking
from tests.builders import ZONE_LABEL, pod

MEMBERS = frozenset({"m1", "m2", "m3"})
HOST = "kubernetes.io/hostname"
SPREAD = {"maxSkew": 1, "topologyKey": ZONE_LABEL, "labelSelector": {}}


def with_visits(subject: Pod, visits: Visits) -> Pod:
    return replace(subject, status=replace(subject.status, conditions=(visits.condition(),)))


def roles(subject: Pod, owner_of: Any = lambda _: "") -> dict[Role, set[str]]:
    by_role: dict[Role, set[str]] = {}
    for member in MEMBERS:
        by_role.setdefault(role_of(subject, member, MEMBERS, ZONE_LABEL, owner_of), set()).add(member)
    by_role.pop(Role.NONE, None)
    return by_role


def required_terms(kind: str, key: str) -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": {}}]}}


def test_pods_of_one_controller_have_one_home() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": True}
    replicas = [pod(f"web-{number}", metadata={"ownerReferences": [reference]}) for number in range(5)]
    assert {owner_key(replica.metadata) for replica in replicas} == {"owner/u-1"}
    assert [roles(replica) for replica in replicas] == [{Role.HOME: {owner("owner/u-1", MEMBERS)}}] * 5


def test_a_pod_that_does_not_fit_goes_once_round_and_then_to_the_overseer() -> None:
    subject = pod("web-1")
    visits = Visits()
    for member in ranking(owner_key(subject.metadata), MEMBERS):
        assert roles(with_visits(subject, visits)) == {Role.HOME: {member}}
        visits = visits.after(member)
    assert roles(with_visits(subject, visits)) == {Role.ALL: {owner(OVERSEER, MEMBERS)}}


def test_a_placed_pod_goes_to_the_owner_of_its_node_alone() -> None:
    subject = with_visits(pod("web-1"), Visits(frozenset({"m1"}), "n7"))
    assert roles(subject, lambda name: "m2" if name == "n7" else "") == {Role.TARGET: {"m2"}}


def test_a_placed_pod_whose_node_is_gone_is_decided_on_anew() -> None:
    subject = pod("web-1")
    assert roles(with_visits(subject, Visits(node="n7"))) == roles(subject)


def test_all_gangs_have_one_member_that_sees_all_so_that_no_two_take_each_others_room() -> None:
    members = [pod(f"{name}-0", labels={"scheduling.x-k8s.io/pod-group": name}) for name in "abcd"]
    assert [roles(member) for member in members] == [{Role.ALL: {owner(OVERSEER, MEMBERS)}}] * 4


def test_pods_whose_rules_reach_over_shards_go_to_the_overseer() -> None:
    subject = pod("web-1", affinity=required_terms("podAntiAffinity", "example.com/row"))
    assert roles(subject) == {Role.ALL: {owner(OVERSEER, MEMBERS)}}


def test_a_member_alone_sees_all_nodes_for_every_pod() -> None:
    assert role_of(pod("web-1"), "m1", frozenset({"m1"}), ZONE_LABEL, lambda _: "") is Role.ALL


@pytest.mark.parametrize(
    ("spec", "reaches_over"),
    [
        ({}, False),
        ({"affinity": required_terms("podAntiAffinity", HOST)}, False),
        ({"affinity": required_terms("podAntiAffinity", ZONE_LABEL)}, False),
        ({"affinity": required_terms("podAntiAffinity", "example.com/row")}, True),
        ({"affinity": required_terms("podAffinity", "example.com/row")}, True),
        ({"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]}, False),
        ({"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]}, True),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}, True),
    ],
)
def test_rules_that_two_members_could_break_together_need_one_that_sees_all(
    spec: dict[str, Any], reaches_over: bool
) -> None:
    assert sees_all(pod("web-1", spec=spec).spec, ZONE_LABEL) is reaches_over


@pytest.mark.parametrize("visits", [Visits(), Visits(frozenset({"m1", "m2"})), Visits(frozenset({"m1"}), "n1")])
def test_visits_are_read_as_they_were_written(visits: Visits) -> None:
    assert Visits.of(with_visits(pod("web-1"), visits)) == visits


@pytest.mark.parametrize("message", ["", "tried: ", "tried: Bad Name, m1; later: x", "node"])
def test_a_condition_of_any_text_is_read(message: str) -> None:
    condition = PodCondition(type=CONDITION, status="False", reason="?", message=message)
    subject = pod("web-1")
    subject = replace(subject, status=replace(subject.status, conditions=(condition,)))
    assert Visits.of(subject) == Visits(frozenset({"m1"}) if "m1" in message else frozenset())
