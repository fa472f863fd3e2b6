import pytest

from podium.estimator.errors import EstimateError
from podium.estimator.server.members import Freshness, Members, OnUnsynced, StaticMember
from tests.unit.estimator.members import member


class _Served:
    def __init__(self, freshness):
        self.cluster, self.freshness = member(), freshness


FRESH, STALE, UNKNOWN = map(_Served, (Freshness.FRESH, Freshness.STALE, Freshness.UNKNOWN))
SERVED = {"fresh": FRESH, "stale": STALE, "unknown": UNKNOWN}


@pytest.mark.parametrize("on_unsynced", OnUnsynced)
def test_fresh_cluster_is_asked_whatever_is_said_of_others(on_unsynced):
    assert Members(SERVED, on_unsynced).find("fresh") is FRESH.cluster


def test_last_known_state_answers_for_a_cluster_that_is_gone_but_not_for_one_never_seen():
    members = Members(SERVED, OnUnsynced.LAST_KNOWN)
    assert members.find("stale") is STALE.cluster
    with pytest.raises(EstimateError, match=r"^cluster unknown has not been listed yet$"):
        members.find("unknown")


def test_error_and_no_limit_are_to_be_had_instead():
    with pytest.raises(EstimateError, match=r"^cluster stale cannot be reached$"):
        Members(SERVED, OnUnsynced.ERROR).find("stale")
    assert Members(SERVED, OnUnsynced.MAX).find("stale") is None
    assert Members(SERVED, OnUnsynced.MAX).find("unknown") is None


def test_cluster_that_is_not_served_is_an_error_in_upstreams_words():
    with pytest.raises(EstimateError, match=r"^cluster name does not match, got: other, desire: m1$"):
        Members({"m1": StaticMember(member())}, OnUnsynced.MAX).find("other")


def test_clusters_that_were_never_listed_are_named():
    assert Members(SERVED).unsynced_names() == ["unknown"]


def test_member_that_is_gone_is_as_one_that_cannot_be_reached_unless_it_was_never_seen():
    members = Members(SERVED, OnUnsynced.LAST_KNOWN)
    for name in SERVED:
        members.let_go(name)
    assert members.find("fresh") is FRESH.cluster
    assert members.unsynced_names() == []
    assert len(members) == 2
    with pytest.raises(EstimateError, match=r"^cluster name does not match, got: unknown, desire: fresh, stale$"):
        members.find("unknown")
    members = Members(SERVED, OnUnsynced.ERROR)
    members.let_go("fresh")
    with pytest.raises(EstimateError, match=r"^cluster fresh cannot be reached$"):
        members.find("fresh")


def test_what_was_known_of_a_member_answers_until_it_is_listed_anew():
    anew = _Served(Freshness.UNKNOWN)
    members = Members(SERVED)
    members.put("fresh", anew)
    assert members.find("fresh") is FRESH.cluster
    assert "fresh" not in members.unsynced_names()
    anew.freshness = Freshness.FRESH
    assert members.find("fresh") is anew.cluster
    anew.freshness = Freshness.STALE
    assert members.find("fresh") is anew.cluster
    members.put("unknown", FRESH)
    assert members.find("unknown") is FRESH.cluster
