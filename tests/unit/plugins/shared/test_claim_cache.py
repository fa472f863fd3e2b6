from __future__ import annotations

from typing import Any

import pytest

from podium.objects.claims import ResourceClaim
from podium.plugins.shared.claim_cache import ClaimCache
from tests.builders import pod
from tests.unit.plugins.dynamic_resources.claims import Followable, a_claim, allocation, special_claim


class Heard:
    """Notes every change."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.broken: list[Any] = []

    def on_add(self, new: ResourceClaim) -> None:
        self.changes.append(("add", "", new.metadata.resource_version))

    def on_update(self, old: ResourceClaim, new: ResourceClaim) -> None:
        self.changes.append(("update", old.metadata.resource_version, new.metadata.resource_version))

    def on_delete(self, old: ResourceClaim) -> None:
        self.changes.append(("delete", old.metadata.resource_version, ""))

    def on_broken(self, fault: Any) -> None:
        self.broken.append(fault)


@pytest.fixture
def followable() -> Followable:
    return Followable([a_claim(version="5")])


@pytest.fixture
def cache(followable: Followable) -> ClaimCache:
    return ClaimCache(followable)


def version(cache: ClaimCache) -> str | None:
    claim = cache.get("default/c")
    return None if claim is None else claim.metadata.resource_version


def test_claims_are_reported_when_they_are_first_needed(followable: Followable, cache: ClaimCache) -> None:
    heard = Heard()
    cache.add_handler(heard)
    followable.put(a_claim(version="6"))
    assert heard.changes == []
    assert version(cache) == "6"
    assert [claim.key for claim in cache.list()] == ["default/c"]
    assert heard.changes == [("add", "", "6")]


def test_an_assumption_is_reported_and_holds_until_the_watch_shows_more(
    followable: Followable, cache: ClaimCache
) -> None:
    heard = Heard()
    cache.add_handler(heard)
    cache.read()
    assert cache.assume(a_claim(version="8", allocation=allocation("g")))
    followable.put(a_claim(version="6"))
    followable.put(a_claim(version="8", allocation=allocation("g")))
    assert version(cache) == "8"
    followable.put(a_claim(version="9"))
    assert version(cache) == "9"
    assert heard.changes == [("add", "", "5"), ("update", "5", "8"), ("update", "8", "9")]


def test_a_dropped_assumption_leaves_what_the_watch_has_shown(followable: Followable, cache: ClaimCache) -> None:
    cache.assume(a_claim(version="8"))
    followable.put(a_claim(version="7"))
    cache.restore("default/c")
    assert version(cache) == "7"
    cache.restore("default/c")
    assert version(cache) == "7"


@pytest.mark.parametrize("claim", [a_claim(version="4"), a_claim("unknown"), a_claim(version="9", uid="another")])
def test_only_newer_states_of_known_claims_are_assumed(cache: ClaimCache, claim: ResourceClaim) -> None:
    assert not cache.assume(claim)
    assert version(cache) == "5"


def test_a_history_that_has_gone_back_ends_an_assumption(followable: Followable, cache: ClaimCache) -> None:
    cache.assume(a_claim(version="8"))
    followable.put(a_claim(version="3"))
    assert version(cache) == "3"


def test_a_claim_that_is_gone_is_gone_with_its_assumption(followable: Followable, cache: ClaimCache) -> None:
    heard = Heard()
    cache.assume(a_claim(version="8"))
    cache.add_handler(heard)
    followable.drop("default/c")
    assert version(cache) is None
    assert heard.changes == [("delete", "8", "")]


def test_the_claim_for_a_pods_extended_resources_is_found(followable: Followable, cache: ClaimCache) -> None:
    followable.put(special_claim("web-1-x", "web-1"))
    special_claim_found = cache.of_extended_resources(pod("web-1"))
    assert special_claim_found is not None
    assert special_claim_found.key == "default/web-1-x"
    assert cache.of_extended_resources(pod("web-2")) is None
    followable.drop("default/web-1-x")
    assert cache.of_extended_resources(pod("web-1")) is None


def test_what_cannot_be_decoded_is_passed_on(followable: Followable, cache: ClaimCache) -> None:
    heard = Heard()
    cache.add_handler(heard)
    followable.handlers[0].on_broken("broken")
    assert heard.broken == ["broken"]
