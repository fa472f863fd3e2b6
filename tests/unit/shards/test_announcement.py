"""Tests for what members announce in their Leases."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.shards.announcement import (
    KEY,
    MEMBER,
    PROTOCOL,
    VERSION,
    VIEWS,
    Announcement,
    MemberLease,
    ShardIdentity,
    unit_of,
)
from podium.shards.rendezvous import owner
from tests.builders import ZONE_LABEL, node

VIEW = frozenset({"m1", "m2", "m3"})


def lease_of(announcement: Announcement, **annotations: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "group-m1", "annotations": announcement.annotations() | annotations},
        "spec": {"holderIdentity": "host_1", "leaseDurationSeconds": 15, "renewTime": "t1"},
    }


def test_a_lease_is_read_as_it_was_announced() -> None:
    announcement = Announcement("m1", ZONE_LABEL, (VIEW, frozenset({"m1"})))
    lease = MemberLease.of(lease_of(announcement))
    assert lease.announcement == announcement
    assert (lease.name, lease.member, lease.holder, lease.duration_s) == ("group-m1", "m1", "host_1", 15.0)


def test_a_node_belongs_to_its_zone_and_without_one_is_alone() -> None:
    assert unit_of(node("n1", labels={ZONE_LABEL: "east"}), ZONE_LABEL) == "east"
    assert unit_of(node("n1"), ZONE_LABEL) == "node/n1"


def test_a_member_claims_the_nodes_of_each_of_its_views() -> None:
    zones = [f"zone-{number}" for number in range(30)]
    views = (VIEW, frozenset({"m1", "m2"}))
    announcement = Announcement("m1", ZONE_LABEL, views)
    for zone in zones:
        is_claimed = any(owner(zone, view) == "m1" for view in views)
        assert announcement.claims(node("n1", labels={ZONE_LABEL: zone})) == is_claimed
    assert not Announcement("m1", ZONE_LABEL).claims(node("n1"))


@pytest.mark.parametrize(
    "annotations",
    [
        {PROTOCOL: "2"},
        {PROTOCOL: None},
        {VIEWS: "["},
        {VIEWS: '{"m1": 1}'},
        {VIEWS: '[["m1"], 7]'},
        {VIEWS: "[[1]]"},
        {VIEWS: None},
        {MEMBER: "Not A Name"},
        {MEMBER: 7},
        {KEY: None},
    ],
)
def test_a_lease_that_cannot_be_understood_claims_every_node(annotations: dict[str, Any]) -> None:
    lease = MemberLease.of(lease_of(Announcement("m1", ZONE_LABEL, (VIEW,)), **annotations))
    assert lease.announcement.claims_all
    assert lease.announcement.claims(node("n1"))


@pytest.mark.parametrize("annotations", [{VERSION: "99.0.0"}, {VERSION: None}, {"podium/shard-later": "field"}])
def test_a_lease_of_another_version_with_the_same_protocol_is_understood(annotations: dict[str, Any]) -> None:
    announcement = Announcement("m1", ZONE_LABEL, (VIEW,))
    lease = MemberLease.of(lease_of(announcement, **annotations))
    assert lease.announcement == announcement
    assert lease.version == (annotations.get(VERSION, podium.__version__) or "")


@pytest.mark.parametrize("lease", [{}, {"metadata": None, "spec": []}, {"metadata": {"annotations": "text"}}])
def test_a_lease_of_any_form_is_read(lease: dict[str, Any]) -> None:
    assert MemberLease.of(lease).announcement.claims_all


def test_the_lease_is_named_after_group_and_member() -> None:
    assert ShardIdentity("podium", "m1", ZONE_LABEL).lease_name == "podium-m1"
