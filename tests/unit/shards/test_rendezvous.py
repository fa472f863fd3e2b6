"""Tests for rendezvous hashing."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.shards.rendezvous import owner, ranking, weight

NAMES = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=9)
KEYS = [f"rack-{number}" for number in range(800)]


@pytest.mark.long
@given(NAMES, st.text(max_size=30))
def test_the_owner_is_the_first_of_the_ranking_in_whatever_order_members_are_named(members: set[str], key: str) -> None:
    assert owner(key, sorted(members)) == owner(key, sorted(members, reverse=True)) == ranking(key, members)[0]
    assert set(ranking(key, members)) == members


@given(NAMES, st.text(max_size=30))
def test_without_its_owner_a_key_goes_to_the_next_of_its_ranking(members: set[str], key: str) -> None:
    first, *followers = ranking(key, members)
    assert ranking(key, members - {first}) == tuple(followers)


@given(NAMES, st.text("uvwxyz", min_size=1, max_size=12))
def test_a_member_that_joins_takes_keys_and_moves_none_between_the_others(members: set[str], newcomer: str) -> None:
    owners = {key: owner(key, members) for key in KEYS[:40]}
    new_owners = {key: owner(key, members | {newcomer}) for key in KEYS[:40]}
    assert all(new_owners[key] in (owners[key], newcomer) for key in owners)


@given(st.integers(1, 12), st.integers(0, 10_000))
@settings(max_examples=10, derandomize=True)
def test_a_member_that_joins_takes_its_share_and_little_more(count: int, seed: int) -> None:
    members = {f"member-{seed}-{number}" for number in range(count)}
    newcomer = f"member-{seed}-{count}"
    share = sum(owner(key, members | {newcomer}) == newcomer for key in KEYS) / len(KEYS)
    # Five standard deviations of as many draws.
    fair_share = 1 / (count + 1)
    assert abs(share - fair_share) < 5 * (fair_share * (1 - fair_share) / len(KEYS)) ** 0.5


@given(st.text(max_size=12), st.text(max_size=30))
def test_members_of_all_versions_hash_alike(member: str, key: str) -> None:
    text = f"{member}\n{key}".encode("utf-8", "surrogatepass")
    assert weight(member, key) == blake2b(text, digest_size=8).digest()


@given(NAMES, st.text(max_size=30))
def test_the_owner_is_the_heaviest_member_however_often_it_is_asked_for(members: set[str], key: str) -> None:
    heaviest = max(members, key=lambda member: (weight(member, key), member))
    assert [owner(key, members) for _ in range(2)] == [heaviest] * 2


def test_without_members_nobody_owns_a_key() -> None:
    assert owner("rack-1", ()) == ""
    assert ranking("rack-1", ()) == ()
