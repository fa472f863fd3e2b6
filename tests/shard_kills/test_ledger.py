"""Tests for the rules of the ledger: each mistake that members could make is found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from podium.shards.announcement import GROUP_LABEL, Announcement, View
from tests import manifests
from tests.manifests import HOSTNAME
from tests.shard_kills.ledger import BindingRequest, Change, Ledger

LEASE_S = 8
ALONE, BOTH = frozenset({"m1"}), frozenset({"m1", "m2"})


class History:
    """A ledger of one node that is `m1`'s while it is alone, and `m2`'s once both are there."""

    def __init__(self) -> None:
        announcement = Announcement("m2", HOSTNAME, (BOTH,))
        self.node = next(name for name in ("node-0", "node-1", "node-2", "node-3") if announcement.claims_unit(name))
        item = manifests.node(self.node, "1000m", memory="1024Mi", pods="9", labels={HOSTNAME: self.node})
        self.ledger, self.requests = Ledger("shards", [item]), dict[str, BindingRequest]()
        self._revision = 0

    def renew(self, member: str, *views: View, at_s: float = 0.0, holder: str = "") -> None:
        lease = {
            "metadata": {
                "name": f"shards-{member}",
                "labels": {GROUP_LABEL: "shards"},
                "annotations": Announcement(member, HOSTNAME, views).annotations(),
            },
            "spec": {
                "holderIdentity": holder or f"{member}-process",
                "leaseDurationSeconds": LEASE_S,
                "renewTime": datetime.fromtimestamp(at_s, UTC)
                .isoformat(timespec="microseconds")
                .replace("+00:00", "Z"),
            },
        }
        self._take(f"/registry/leases/kube-system/shards-{member}", lease)

    def bind(self, name: str, member: str, at_s: float = 1.0, cpu: str = "100m") -> None:
        self.requests[name] = BindingRequest(member, at_s)
        self._take(f"/registry/pods/default/{name}", manifests.pod(name, cpu, node=self.node))

    def delete(self, name: str) -> None:
        self._take(f"/registry/pods/default/{name}", None)

    def move(self, name: str, node: str) -> None:
        self._take(f"/registry/pods/default/{name}", manifests.pod(name, node=node))

    def check(self) -> int:
        return self.ledger.check_acts(self.requests)

    def _take(self, key: str, value: dict[str, Any] | None) -> None:
        self._revision += 1
        self.ledger.take(Change(self._revision, key, value))


@pytest.fixture
def history() -> History:
    result = History()
    result.renew("m1", ALONE)
    return result


def test_a_hand_over_after_the_old_owner_has_let_go_is_as_it_should_be(history: History) -> None:
    history.bind("first", "m1")
    history.renew("m2", BOTH)
    history.renew("m1", BOTH, ALONE)
    history.bind("second", "m1")
    history.renew("m1", BOTH)
    history.bind("third", "m2")
    assert history.check() == 0
    assert history.ledger.is_divided(1.0)


def test_an_expired_lease_need_not_be_given_up(history: History) -> None:
    history.bind("first", "m1")
    history.renew("m2", BOTH, at_s=5.0)
    assert not history.ledger.is_divided(5.0)
    history.bind("second", "m2", at_s=LEASE_S + 0.1)
    assert history.check() == 0
    assert history.ledger.is_divided(LEASE_S + 0.1, dead_holder="m1-process")
    assert history.ledger.holders(LEASE_S + 0.1) == {"m2-process"}


def test_a_lease_that_was_renewed_too_late_had_run_out_meanwhile(history: History) -> None:
    history.bind("first", "m1")
    history.renew("m2", BOTH, at_s=LEASE_S + 0.1)
    history.renew("m1", ALONE, at_s=LEASE_S + 0.2)
    history.bind("second", "m2", at_s=LEASE_S + 0.3)
    assert history.check() == 0


def test_two_members_that_act_on_a_node_at_a_time_are_found(history: History) -> None:
    history.bind("first", "m1")
    history.renew("m2", BOTH)
    history.renew("m1", BOTH, ALONE)
    history.bind("second", "m2")
    with pytest.raises(AssertionError, match=r"m1 bound first .* and claimed that node when m2 bound second there"):
        history.check()


def test_a_member_that_acts_without_a_claim_is_found(history: History) -> None:
    history.renew("m1", BOTH)
    history.bind("first", "m1")
    with pytest.raises(AssertionError, match="does not claim it"):
        history.check()


def test_a_member_that_acts_after_its_lease_has_run_out_is_found(history: History) -> None:
    history.bind("first", "m1", at_s=LEASE_S + 0.5)
    with pytest.raises(AssertionError, match=r"0\.5 s after its Lease"):
        history.check()


def test_an_overfull_node_is_found_and_a_pod_that_has_gone_takes_no_room(history: History) -> None:
    history.bind("first", "m1", cpu="600m")
    history.delete("first")
    history.bind("second", "m1", cpu="600m")
    with pytest.raises(AssertionError, match=r"holds .1200, 128, 2. and offers .1000, 1024, 9."):
        history.bind("third", "m1", cpu="600m")


def test_a_pod_that_leaves_its_node_is_found(history: History) -> None:
    history.bind("first", "m1")
    with pytest.raises(AssertionError, match="first went from"):
        history.move("first", "elsewhere")


def test_a_binding_of_which_the_audit_log_is_silent_is_counted(history: History) -> None:
    history.bind("first", "m1")
    history.requests.clear()
    assert history.check() == 1
