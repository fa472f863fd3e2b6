"""Tests for the report on a group of shards."""

from __future__ import annotations

from dataclasses import replace

from podium.shards.announcement import Announcement, MemberLease
from podium.shards.report import report_on
from tests.builders import ZONE_LABEL, node

BOTH = frozenset({"m1", "m2"})
NODES = [node(f"n{number}", labels={ZONE_LABEL: f"zone-{number}"}) for number in range(8)]


def lease(member: str, *views: frozenset[str], renewed_at_s: float = 100.0, holder: str = "host") -> MemberLease:
    announcement = Announcement(member, ZONE_LABEL, views)
    return MemberLease(f"g-{member}", holder, "1", 15.0, announcement, "1.0", "1", renewed_at_s)


def test_every_node_is_of_one_member() -> None:
    report = report_on("g", [lease("m2", BOTH), lease("m1", BOTH)], NODES, 105.0)
    assert [member.member for member in report.members] == ["m1", "m2"]
    assert sorted(name for member in report.members for name in member.nodes) == [item.name for item in NODES]
    assert not report.unowned
    assert {member.state for member in report.members} == {"alive"}


def test_members_that_are_silent_or_gone_own_nothing() -> None:
    report = report_on("g", [lease("m1", BOTH), lease("m2", BOTH, holder="")], NODES, 116.0)
    assert [(member.state, member.nodes) for member in report.members] == [("expired", ()), ("left", ())]
    assert report.unowned == tuple(item.name for item in NODES)


def test_nodes_that_are_being_handed_over_are_contested() -> None:
    alone = frozenset({"m1"})
    report = report_on("g", [lease("m1", BOTH, alone), lease("m2", BOTH)], NODES, 100.0)
    first, second = report.members
    assert first.state == "settling"
    assert second.contested == second.nodes
    assert not first.contested


def test_a_member_that_is_not_understood_contests_every_node() -> None:
    unclear = replace(lease("m2"), announcement=Announcement("m2", claims_all=True))
    report = report_on("g", [lease("m1", BOTH), unclear], NODES, 100.0)
    assert report.members[0].contested == report.members[0].nodes
    assert report.as_dict()["apiVersion"] == "podium/v1alpha1"
