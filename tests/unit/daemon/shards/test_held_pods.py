"""Tests for the pods that a member holds undecoded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.client.informer import Informer
from podium.daemon.shards.held_pods import HeldPods
from podium.lib.clock import ManualClock
from podium.objects.core import Node, Pod
from podium.objects.resource_types import PODS
from podium.objects.wire import Bookmark, BrokenObject, ObjectDecoder
from podium.shards import Ownership, owner
from tests.builders import ZONE_LABEL, node

pytestmark = pytest.mark.anyio

MEMBERS = frozenset({"m1", "m2"})
ALONE = Ownership("m1", ZONE_LABEL, frozenset({"m1"}), (frozenset({"m1"}),))
DIVIDED = Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS,))
ZONES = [f"z{number}" for number in range(20)]
MINE = next(zone for zone in ZONES if owner(zone, MEMBERS) == "m1")
THEIRS = next(zone for zone in ZONES if owner(zone, MEMBERS) == "m2")
UIDS = [f"u-{number}" for number in range(20)]
MY_UID = next(uid for uid in UIDS if owner(f"pod/{uid}", MEMBERS) == "m1")
THEIR_UID = next(uid for uid in UIDS if owner(f"pod/{uid}", MEMBERS) == "m2")


class Member:
    """The store of pods of m1 and what is held beside it, fed as a reflector does."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {
            item.name: item
            for item in (node("mine", labels={ZONE_LABEL: MINE}), node("theirs", labels={ZONE_LABEL: THEIRS}))
        }
        self.pods = Informer(PODS, lambda _resource, error: pytest.fail(str(error)))
        self.pods.add_handler(self)
        self.clock = ManualClock()
        self.held_pods = HeldPods(self.pods, self.nodes.get, {"podium"}, self.clock)
        self.events: list[tuple[str, str]] = []
        self._decode = ObjectDecoder(PODS).event

    async def use(self, ownership: Ownership) -> None:
        await self.held_pods.follow(ownership)
        self.held_pods.settle()

    def watch(
        self, kind: str, version: int, *, uid: str = THEIR_UID, metadata: Any = None, status: Any = None, **spec: Any
    ) -> None:
        identity = {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version), **(metadata or {})}
        body = {
            "kind": "Pod",
            "metadata": identity,
            "spec": {"schedulerName": "podium", **spec},
            "status": status or {},
        }
        self.deliver(json.dumps({"type": kind, "object": body}).encode())

    def deliver(self, line: bytes) -> None:
        if self.held_pods.take(line) is not None:
            return
        event = self._decode(line)
        assert not isinstance(event, Bookmark)
        if isinstance(event.object, BrokenObject):
            self.pods.mark_broken(event.object, deleted=event.type == "DELETED")
        elif event.type == "DELETED":
            self.pods.drop(event.object)
        else:
            self.pods.put(event.object)

    @property
    def store(self) -> list[tuple[str, str]]:
        return [(item.metadata.resource_version, item.node_name) for item in self.pods.list()]

    def on_add(self, new: Pod) -> None:
        self.events.append(("add", new.metadata.resource_version))

    def on_update(self, old: Pod, new: Pod) -> None:
        self.events.append(("update", new.metadata.resource_version))

    def on_delete(self, old: Pod) -> None:
        self.events.append(("delete", old.metadata.resource_version))

    def on_broken(self, broken_object: BrokenObject) -> None:
        self.events.append(("broken", broken_object.key))


@pytest.fixture
async def member() -> Member:
    member = Member()
    await member.use(DIVIDED)
    return member


async def test_before_a_member_has_joined_it_holds_no_pod() -> None:
    member = Member()
    member.watch("ADDED", 1)
    assert member.store == [("1", "")]


async def test_a_member_that_is_alone_holds_no_pod() -> None:
    member = Member()
    await member.use(ALONE)
    member.watch("ADDED", 1)
    assert member.store == [("1", "")]
    assert member.held_pods.has_none()
    assert not member.held_pods.is_over


async def test_a_pod_of_another_member_is_held_until_it_is_gone(member: Member) -> None:
    member.watch("ADDED", 1)
    member.watch("MODIFIED", 2, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([], 1)
    member.watch("DELETED", 3, nodeName="theirs")
    assert (member.store, len(member.held_pods), member.events) == ([], 0, [])


async def test_a_pod_of_this_member_is_stored(member: Member) -> None:
    member.watch("ADDED", 1, uid=MY_UID)
    member.watch("MODIFIED", 2, uid=MY_UID, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)


async def test_a_pod_that_comes_to_a_node_of_this_member_is_stored_then(member: Member) -> None:
    member.watch("ADDED", 1)
    member.watch("MODIFIED", 2, nodeName="mine")
    assert (member.store, len(member.held_pods), member.events) == ([("2", "mine")], 0, [("add", "2")])


@pytest.mark.parametrize(
    "fields",
    [
        {"nodeName": "unknown"},
        {"schedulerName": "another"},
        {"affinity": {"podAffinity": {}}},
        {"status": {"conditions": [{"type": "podium/shards", "message": "tried: m2"}]}},
    ],
)
async def test_a_pod_that_may_concern_this_member_is_stored(member: Member, fields: dict[str, Any]) -> None:
    member.watch("ADDED", 1)
    member.watch("MODIFIED", 2, **fields)
    assert (len(member.held_pods), member.events) == (0, [("add", "2")])


async def test_a_stored_pod_is_never_held_again(member: Member) -> None:
    member.watch("ADDED", 1, affinity={"podAffinity": {}})
    member.watch("MODIFIED", 2, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)


async def test_pods_on_nodes_that_come_to_this_member_are_stored_before_it_uses_them(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs")
    await member.held_pods.follow(ALONE)
    assert (member.store, len(member.held_pods)) == ([("1", "theirs")], 0)


async def test_pending_pods_that_come_to_this_member_are_stored(member: Member) -> None:
    member.watch("ADDED", 1)
    await member.use(ALONE)
    assert member.store == [("1", "")]


async def test_until_an_ownership_is_in_use_pods_of_both_are_stored(member: Member) -> None:
    next_ownership = Ownership("m1", ZONE_LABEL, frozenset({"m1", "m3"}), (frozenset({"m1", "m3"}),))
    zone = next(zone for zone in ZONES if owner(zone, {"m1", "m3"}) == "m1" and owner(zone, MEMBERS) == "m2")
    member.nodes["theirs"] = node("theirs", labels={ZONE_LABEL: zone})
    await member.held_pods.follow(next_ownership)
    member.watch("ADDED", 1, nodeName="theirs")
    assert member.store == [("1", "theirs")]
    await member.use(DIVIDED)
    member.watch("DELETED", 2, nodeName="theirs")
    member.watch("ADDED", 3, uid=UIDS[-1], nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([], 1)


async def test_a_node_that_an_earlier_view_gives_is_regarded_as_this_members(member: Member) -> None:
    await member.use(Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS, frozenset({"m1"}))))
    member.watch("ADDED", 1, nodeName="theirs")
    assert member.store == [("1", "theirs")]


async def test_pods_on_a_node_whose_label_changes_are_stored_at_once(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs")
    member.held_pods.release_on(member.nodes["theirs"])
    assert len(member.held_pods) == 1
    member.nodes["theirs"] = node("theirs", labels={ZONE_LABEL: MINE})
    member.held_pods.release_on(member.nodes["theirs"])
    assert (member.store, len(member.held_pods)) == ([("1", "theirs")], 0)


async def test_before_a_list_all_pods_are_stored(member: Member) -> None:
    member.watch("ADDED", 1)
    member.watch("MODIFIED", 2, nodeName="theirs", metadata={"labels": {"app": "web"}})
    await member.held_pods.release_all()
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)
    await member.pods.replace([], [])
    assert member.events == [("add", "2"), ("delete", "2")]


async def test_once_all_pods_are_needed_none_is_held_any_more(member: Member) -> None:
    calls: list[None] = []
    member.held_pods.on_wanted = lambda: calls.append(None)
    member.watch("ADDED", 1, nodeName="theirs")
    assert not member.held_pods.has_none()
    assert len(calls) == 1
    member.watch("MODIFIED", 2, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)
    assert member.held_pods.has_none()
    member.watch("DELETED", 3, nodeName="theirs")
    member.watch("ADDED", 4, uid=UIDS[-1], nodeName="theirs")
    assert member.store == [("4", "theirs")]


async def test_pods_are_held_again_a_while_after_the_last_decision_that_needed_all(member: Member) -> None:
    member.held_pods.has_none()
    for seconds, is_over in ((30.0, True), (29.0, True), (2.0, False)):
        member.clock.advance(seconds)
        await member.held_pods.hold_again(lambda _: True)
        assert member.held_pods.is_over is is_over
    member.watch("ADDED", 1, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([], 1)
    assert not member.held_pods.has_none()
    assert member.held_pods.is_over


async def test_pods_are_not_held_again_while_one_waits_that_needs_all(member: Member) -> None:
    member.held_pods.has_none()
    member.watch("ADDED", 1, metadata={"name": "waiting"}, uid=MY_UID)
    member.watch("ADDED", 2, metadata={"name": "bound"}, uid=UIDS[-1], nodeName="theirs")
    member.watch("ADDED", 3, metadata={"name": "foreign"}, uid=UIDS[-2], schedulerName="another")
    names: list[str] = []

    def needs_all(item: Pod) -> bool:
        names.append(item.metadata.name)
        return True

    member.clock.advance(61.0)
    await member.held_pods.hold_again(needs_all)
    assert (member.held_pods.is_over, names) == (True, ["waiting"])
    member.watch("MODIFIED", 4, metadata={"name": "waiting"}, uid=MY_UID, nodeName="mine")
    member.clock.advance(61.0)
    await member.held_pods.hold_again(needs_all)
    assert not member.held_pods.is_over


async def test_a_decision_that_needs_all_pods_meanwhile_keeps_them_from_being_held(member: Member) -> None:
    member.held_pods.has_none()
    member.watch("ADDED", 1, uid=MY_UID)
    member.clock.advance(61.0)
    await member.held_pods.hold_again(lambda _: member.held_pods.has_none() and False)
    assert member.held_pods.is_over


async def test_with_a_part_that_may_read_any_pod_none_is_ever_held(member: Member) -> None:
    member.held_pods.hold_none()
    member.held_pods.has_none()
    member.clock.advance(1e6)
    await member.held_pods.hold_again(lambda _: False)
    member.watch("ADDED", 1, nodeName="theirs")
    assert (member.store, len(member.held_pods)) == ([("1", "theirs")], 0)


async def test_an_older_state_of_a_held_pod_is_left_out(member: Member) -> None:
    member.watch("ADDED", 5)
    member.watch("MODIFIED", 4, nodeName="mine")
    assert (member.store, len(member.held_pods)) == ([], 1)
    member.watch("DELETED", 4)
    assert len(member.held_pods) == 1


async def test_a_state_that_is_older_than_the_deletion_does_not_bring_a_held_pod_back(member: Member) -> None:
    member.watch("ADDED", 1)
    member.watch("DELETED", 3)
    member.watch("MODIFIED", 2)
    assert (member.store, len(member.held_pods)) == ([], 0)


async def test_another_pod_of_the_name_takes_the_place_of_a_held_one(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs")
    member.watch("ADDED", 3, uid=MY_UID)
    assert (member.store, len(member.held_pods)) == ([("3", "")], 0)
    member.watch("DELETED", 4, uid=MY_UID)
    member.watch("ADDED", 5, uid=UIDS[-1], nodeName="theirs")
    member.watch("DELETED", 6, uid=THEIR_UID)
    assert (member.store, len(member.held_pods)) == ([], 1)


async def test_a_line_that_cannot_be_read_in_outline_takes_the_place_of_what_is_held(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs")
    member.watch("MODIFIED", 2, nodeName="theirs", metadata={"labels": None})
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)
    member.watch("ADDED", 3, uid=UIDS[-1], nodeName="theirs", metadata={"name": "q"})
    member.watch("DELETED", 4, uid=UIDS[-1], nodeName="theirs", metadata={"name": "q", "labels": None})
    assert (member.store, len(member.held_pods)) == ([("2", "theirs")], 0)


async def test_a_held_pod_that_turns_out_to_be_unreadable_is_stored_as_far_as_it_can_be_read(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs", metadata={"annotations": "none", "generation": "x"})
    assert len(member.held_pods) == 1
    await member.held_pods.release_all()
    assert (member.store, len(member.held_pods)) == ([("1", "theirs")], 0)


async def test_a_held_pod_that_cannot_be_read_at_all_is_reported_then(member: Member) -> None:
    member.watch("ADDED", 1, metadata={"annotations": "none"})
    await member.held_pods.release_all()
    assert (member.events, len(member.held_pods)) == ([("broken", "ns/p")], 0)


async def test_held_pods_can_be_looked_at(member: Member) -> None:
    member.watch("ADDED", 1, nodeName="theirs", priority=7)
    assert [(item.key, item.node_name, item.priority) for item in member.held_pods.decode_all()] == [
        ("ns/p", "theirs", 7)
    ]
    assert len(member.held_pods) == 1
