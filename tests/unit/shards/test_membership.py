"""Tests for membership and hand-over, in virtual time: random schedules of members that list, write, die and return."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from podium.objects.core import Node
from podium.shards.announcement import OVERSEER, PROTOCOL_SPOKEN, Announcement, MemberLease, View, unit_of
from podium.shards.membership import Membership, Ownership
from tests.builders import ZONE_LABEL, node

LEASE_S, RENEW_DEADLINE_S = 15.0, 10.0
NODES = [node(f"n{number}", labels={ZONE_LABEL: f"zone-{number}"}) for number in range(5)]
NODES += [node(f"bare-{number}") for number in range(3)]


def lease(announcement: Announcement, stamp: str = "1", holder: str = "host") -> MemberLease:
    return MemberLease(f"g-{announcement.member}", holder, stamp, LEASE_S, announcement, "1.0", PROTOCOL_SPOKEN)


def join_group(member: str, *leases: MemberLease, at_s: float = 0.0) -> Membership:
    """A member that has listed, announced and listed again."""
    membership = Membership(member, ZONE_LABEL, f"g-{member}")
    membership.observe(leases, at_s, at_s)
    membership.announce(membership.next_announcement(lambda _: True))
    membership.observe(leases, at_s, at_s)
    return membership


def nodes_of(ownership: Ownership) -> set[str]:
    return {item.name for item in NODES if ownership.owns(item)}


def test_a_member_alone_owns_every_node_once_it_has_announced_that() -> None:
    membership = Membership("m1", ZONE_LABEL, "g-m1")
    membership.observe((), 0.0, 0.0)
    assert nodes_of(membership.ownership) == set()
    membership.announce(membership.next_announcement(lambda _: True))
    assert nodes_of(membership.ownership) == {item.name for item in NODES}


def test_a_newcomer_owns_nothing_before_the_others_have_let_go() -> None:
    alone = Announcement("m1", ZONE_LABEL, (frozenset({"m1"}),))
    newcomer = join_group("m2", lease(alone))
    assert newcomer.view == {"m1", "m2"}
    assert nodes_of(newcomer.ownership) == set()
    settling = Announcement("m1", ZONE_LABEL, (frozenset({"m1", "m2"}), frozenset({"m1"})))
    newcomer.observe([lease(settling, "2")], 1.0, 1.0)
    assert nodes_of(newcomer.ownership) == set()
    settled = Announcement("m1", ZONE_LABEL, (frozenset({"m1", "m2"}),))
    newcomer.observe([lease(settled, "3")], 2.0, 2.0)
    rival = Ownership("m1", ZONE_LABEL, frozenset({"m1", "m2"}), settled.views)
    assert nodes_of(newcomer.ownership) | nodes_of(rival) == {item.name for item in NODES}
    assert not nodes_of(newcomer.ownership) & nodes_of(rival)


def test_a_view_stays_announced_until_its_bindings_have_ended() -> None:
    membership = join_group("m1")
    membership.observe([lease(Announcement("m2", ZONE_LABEL))], 1.0, 1.0)
    pair, alone = frozenset({"m1", "m2"}), frozenset({"m1"})
    assert membership.next_announcement(lambda _: False).views == (pair, alone)
    membership.announce(membership.next_announcement(lambda _: False))
    assert membership.next_announcement(lambda _: False).views == (pair, alone)
    assert membership.next_announcement(lambda _: True).views == (pair,)


def test_a_member_that_is_silent_counts_for_its_lease_duration_and_no_longer() -> None:
    peer = lease(Announcement("m2", ZONE_LABEL, (frozenset({"m1", "m2"}),)))
    membership = join_group("m1", peer)
    membership.observe([peer], LEASE_S, LEASE_S)
    assert membership.view == {"m1", "m2"}
    membership.observe([peer], LEASE_S + 0.1, LEASE_S + 0.1)
    assert membership.view == {"m1"}


def test_a_list_that_takes_long_lets_no_lease_run_out_early() -> None:
    peer = lease(Announcement("m2", ZONE_LABEL, (frozenset({"m1", "m2"}),)))
    membership = join_group("m1", peer)
    membership.observe([peer], LEASE_S - 1.0, LEASE_S + 9.0)
    assert membership.view == {"m1", "m2"}


def test_a_member_that_has_left_does_not_count() -> None:
    departed = lease(Announcement("m2", ZONE_LABEL, (frozenset({"m2"}),)), holder="")
    membership = join_group("m1", departed)
    assert membership.view == {"m1"}
    assert nodes_of(membership.ownership) == {item.name for item in NODES}


def test_a_member_that_is_not_understood_gets_no_pods_and_keeps_its_nodes() -> None:
    membership = join_group("m1", lease(Announcement("m2", claims_all=True)))
    assert membership.view == {"m1"}
    assert nodes_of(membership.ownership) == set()


def test_members_with_other_keys_never_own_one_node() -> None:
    pair = frozenset({"m1", "m2"})
    first = join_group("m1", lease(Announcement("m2", "rack", (pair,))))
    second_claims = Announcement("m2", "rack", (pair,))
    assert nodes_of(first.ownership)
    assert not [item for item in NODES if first.ownership.owns(item) and second_claims.claims(item)]


def test_nodes_that_are_given_up_are_left_at_once() -> None:
    membership = join_group("m1")
    remainder = membership.ownership.narrow_to(frozenset({"m1", "m2"}), frozenset({"m1", "m2"}))
    given_up = nodes_of(membership.ownership) - nodes_of(remainder)
    assert given_up
    assert all(not remainder.owns(item) for item in NODES if item.name in given_up)


# ---------------------------------------------------------------- random schedules


@dataclass
class Process:
    """A member that follows the protocol, one request at a time."""

    member: str
    membership: Membership
    ownership: Ownership
    renewed_at_s: float
    bindings: list[Node] = field(default_factory=list)
    overseen_pods: int = 0

    def may_act(self, now_s: float) -> bool:
        return now_s < self.renewed_at_s + RENEW_DEADLINE_S

    def is_settled(self, view: View) -> bool:
        claim = Announcement(self.member)
        if self.overseen_pods and not claim.claims_by(view, OVERSEER):
            return False
        return all(claim.claims_by(view, unit_of(item, ZONE_LABEL)) for item in self.bindings)


class Group:
    """Members in one schedule, with the Leases as the API server has them."""

    def __init__(self, random: Random) -> None:
        self.random, self.now_s, self.writes = random, 0.0, 0
        self.leases: dict[str, MemberLease] = {}
        self.live: dict[str, Process] = {}
        self.expires_at_s: dict[str, float] = {}

    def start(self, member: str) -> None:
        lease_before = self.leases.get(f"g-{member}")
        if lease_before is not None and lease_before.holder and self.now_s < self.expires_at_s.get(member, 0.0):
            return
        membership = Membership(member, ZONE_LABEL, f"g-{member}")
        self.live[member] = Process(member, membership, Ownership(member, ZONE_LABEL), self.now_s)
        self.write(self.live[member], membership.announcement)

    def write(self, process: Process, announcement: Announcement) -> None:
        self.writes += 1
        process.renewed_at_s = self.now_s
        self.expires_at_s[process.member] = self.now_s + LEASE_S
        self.leases[f"g-{process.member}"] = lease(announcement, str(self.writes))

    def step(self, process: Process) -> None:
        if not process.may_act(self.now_s):
            del self.live[process.member]
            return
        membership = process.membership
        action = self.random.random()
        if action < 0.2:
            self.write(process, membership.announcement)
        elif action < 0.3 and process.bindings:
            process.bindings.pop()
        elif action < 0.35:
            process.overseen_pods = int(process.ownership.oversees and not process.overseen_pods)
        elif action < 0.5:
            owned_nodes = [item for item in NODES if process.ownership.owns(item)]
            if owned_nodes:
                process.bindings.append(self.random.choice(owned_nodes))
        else:
            self.follow(process, membership)

    def follow(self, process: Process, membership: Membership) -> None:
        requested_s = self.now_s
        leases = list(self.leases.values())
        # The answer is on its way while others act.
        self.pass_time(self.random.choice((0.0, 0.0, 0.5)))
        membership.observe(leases, requested_s, self.now_s)
        if membership.announcement.views[:1] != (membership.view,):
            process.ownership = process.ownership.narrow_to(membership.view, membership.view)
        announcement = membership.next_announcement(process.is_settled)
        if announcement == membership.announcement:
            process.ownership = membership.ownership
        elif process.may_act(self.now_s):
            self.write(process, announcement)
            # Of an answer that is lost the member does not know whether it was written.
            if self.random.random() > 0.1:
                membership.announce(announcement)

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds

    def check(self) -> None:
        for item in NODES:
            owners = [
                process.member
                for process in self.live.values()
                if process.may_act(self.now_s) and (process.ownership.owns(item) or item in process.bindings)
            ]
            assert len(owners) < 2, f"{owners} own {item.name}"
        overseers = [
            process.member
            for process in self.live.values()
            if process.may_act(self.now_s) and (process.ownership.oversees or process.overseen_pods)
        ]
        assert len(overseers) < 2, f"{overseers} see all nodes"


@pytest.mark.parametrize("seed", range(6))
def test_no_node_has_two_owners_whatever_happens(seed: int) -> None:
    random = Random(seed)
    group = Group(random)
    for _ in range(400):
        group.pass_time(random.choice((0.01, 0.1, 0.3, 0.3, 1.0)))
        chance = random.random()
        if chance < 0.05:
            if (name := random.choice(("m1", "m2", "m3", "m4"))) not in group.live:
                group.start(name)
        elif chance < 0.06 and group.live:
            del group.live[random.choice(sorted(group.live))]
        elif chance < 0.07:
            group.pass_time(random.choice((5.0, 12.0, 30.0)))
        elif group.live:
            group.step(group.live[random.choice(sorted(group.live))])
        group.check()


def test_after_a_while_of_quiet_every_node_has_an_owner() -> None:
    group = Group(Random(1))
    for name in ("m1", "m2", "m3"):
        group.start(name)
    for _ in range(20):
        group.now_s += 0.2
        for process in list(group.live.values()):
            group.write(process, process.membership.announcement)
            group.follow(process, process.membership)
    assert all(any(process.ownership.owns(item) for process in group.live.values()) for item in NODES)
    assert sum(process.ownership.oversees for process in group.live.values()) == 1
