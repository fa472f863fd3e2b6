"""Which quota counts for a namespace, and what its pods use."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.manifests import read_manifest
from podium.objects.resource_types import PODS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.plugins.contrib.capacity_scheduling.quotas import Quota, Quotas, QuotaSet, QuotaState
from tests.unit.plugins.contrib.capacity_scheduling.quota_bench import Store, pod, quota


def state(store: Store, quotas: Quotas, incoming: dict[str, Any] | None = None) -> QuotaState:
    return quotas.state_for(read_manifest(incoming or pod("a/asked", "0"), PODS), iter(()))


def test_pods_that_were_bound_before_their_quota_count() -> None:
    """Upstream counts them only after a restart."""
    store = Store(pod("a/old", "2", "n1"))
    quotas = Quotas(store.handle)
    quotas.read()
    store.put(quota("a", min={"cpu": "1"}))
    assert state(store, quotas).usage["a"]["cpu"] == 2000
    assert state(store, quotas).is_borrowing("a")


def test_an_update_of_a_pod_in_place_is_followed() -> None:
    """Upstream keeps the old amounts, and later subtracts the new ones."""
    store = Store(quota("a"), pod("a/web", "1", "n1"))
    quotas = Quotas(store.handle)
    assert state(store, quotas).usage["a"]["cpu"] == 1000
    resized = store.put(pod("a/web", "3", "n1"))
    assert state(store, quotas).usage["a"]["cpu"] == 3000
    store.drop(resized)
    assert state(store, quotas).usage["a"]["cpu"] == 0


def test_a_reserved_pod_counts_once_and_until_it_is_given_up() -> None:
    store = Store(quota("a"))
    quotas = Quotas(store.handle)
    item = read_manifest(pod("a/web", "1"), PODS)
    quotas.reserve(item)
    quotas.reserve(item)
    assert state(store, quotas).usage["a"]["cpu"] == 1000
    quotas.unreserve(item)
    quotas.unreserve(item)
    assert state(store, quotas).usage["a"]["cpu"] == 0
    quotas.reserve(item)
    store.put(pod("a/web", "1", "n1"))
    quotas.unreserve(item)
    assert state(store, quotas).usage["a"]["cpu"] == 1000


def test_of_several_quotas_the_oldest_counts_and_then_the_next_one() -> None:
    """Upstream takes any, the last one updated, and none once one of them is deleted."""
    store = Store(quota("a", "young", "2026-01-02T00:00:00Z"), quota("a", "old", "2026-01-01T00:00:00Z"))
    quotas = Quotas(store.handle)
    assert quotas.read().quotas["a"].key == "a/old"
    store.put(quota("a", "young", "2026-01-02T00:00:00Z", min={"cpu": "1"}))
    assert quotas.read().quotas["a"].key == "a/old"
    store.drop(store.objects.get(ELASTIC_QUOTAS, "a/old"))
    assert quotas.read().quotas["a"].key == "a/young"
    store.drop(store.objects.get(ELASTIC_QUOTAS, "a/young"))
    assert "a" not in quotas.read().quotas


def test_a_list_that_lacks_a_basic_resource_allows_none_of_it() -> None:
    partial = Quota.of(read_manifest(quota("a", max={"memory": "8Gi"}), ELASTIC_QUOTAS))
    unlimited = Quota.of(read_manifest(quota("b", min={"cpu": "1"}), ELASTIC_QUOTAS))
    quotas = QuotaSet.of({"a": partial, "b": unlimited}, {"a": "a", "b": "b"}, {})
    at_once = QuotaState(quotas, {}, {}, {}, {}, {}, {})
    assert at_once.exceeds_max("a", {"cpu": 1})
    assert not at_once.exceeds_max("a", {"memory": 1, "example.com/gpu": 100})
    assert not at_once.exceeds_max("b", {"cpu": 1 << 60, "example.com/gpu": 100})
    assert at_once.exceeds_min("b", {"example.com/gpu": 1})
    assert at_once.exceeds_total({"memory": 1})
    assert not at_once.exceeds_total({"cpu": 1000})


def test_dry_runs_change_only_their_own_state() -> None:
    store = Store(quota("a", min={"cpu": "1"}), pod("a/web", "2", "n1"))
    state_before = state(store, Quotas(store.handle))
    victim, stranger = store.objects.get(PODS, "a/web"), read_manifest(pod("x/y", "2", "n1"), PODS)
    assert victim is not None
    twin = state_before.clone()
    for _ in range(2):
        twin.remove(victim)
        twin.remove(stranger)
    assert twin.usage["a"]["cpu"] == 0
    assert not twin.is_borrowing("a")
    for _ in range(2):
        twin.add(victim)
    assert twin.usage["a"]["cpu"] == 2000
    assert state_before.usage["a"]["cpu"] == 2000
    incoming = read_manifest(pod("a/more", "1"), PODS)
    twin.add(incoming)
    twin.add(incoming)
    assert twin.usage["a"]["cpu"] == 3000


def test_nominated_pods_of_the_same_quota_and_of_frugal_ones_are_ahead() -> None:
    store = Store(quota("a", min={"cpu": "9"}), quota("b", min={"cpu": "1"}), quota("c"), pod("c/x", "1", "n1"))
    quotas = Quotas(store.handle)
    nominees = [pod("a/same", "1", priority=5), pod("a/lower", "1", priority=1), pod("b/other", "1"), pod("c/y", "1")]
    incoming_pod = read_manifest(pod("a/asked", "1", priority=5), PODS)
    items = [read_manifest(manifest, PODS) for manifest in nominees]
    at_once = quotas.state_for(incoming_pod, iter([*items, incoming_pod]))
    assert at_once.request == {"cpu": 1000}
    assert at_once.ahead["cpu"] == 2000
    assert at_once.ahead_of_all["cpu"] == 3000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"min": {"cpu": "two"}}, "ElasticQuota a/quota: spec.min[cpu]: "),
        ({"max": {"cpu": "-1"}}, "ElasticQuota a/quota: spec.max[cpu]: is negative"),
        ({"min": {"cpu": "2"}, "max": {"cpu": "1"}}, "ElasticQuota a/quota: spec.min[cpu]: is above spec.max[cpu]"),
    ],
)
def test_suspicious_amounts_are_named(spec: Any, words: str) -> None:
    [oddity] = Quota.of(read_manifest(quota("a", **spec), ELASTIC_QUOTAS)).oddities()
    assert oddity.startswith(words)


def test_an_unreadable_quota_does_not_count_in_the_sum_of_all() -> None:
    store = Store(quota("a", min={"cpu": "two"}), quota("b", min={"cpu": "1"}), pod("a/web", "5", "n1"))
    assert not state(store, Quotas(store.handle)).exceeds_total({"cpu": 1000})


def test_quotas_that_are_beyond_64_bits_or_second_in_their_namespace_are_named() -> None:
    store = Store(
        quota("a", "first", "2026-01-01T00:00:00Z", max={"cpu": "1e19", "memory": "1e18"}),
        quota("a", "second", "2026-01-02T00:00:00Z"),
    )
    quotas = Quotas(store.handle)
    assert list(quotas.oddities()) == [
        "ElasticQuota a/first: spec.max[cpu]: is beyond 64 bits, so another amount counts",
        "ElasticQuota a/second: does not count beside a/first of its namespace, which is older",
    ]


def test_a_quota_that_is_deleted_while_used_leaves_its_pods_without_quota() -> None:
    """Its usage is kept for the next quota of the namespace, which upstream would begin with nothing."""
    store = Store(pod("a/web", "2", "n1"))
    quotas = Quotas(store.handle)
    item = store.put(quota("a", min={"cpu": "1"}))
    assert state(store, quotas).is_borrowing("a")
    store.drop(item)
    unlimited = state(store, quotas)
    assert unlimited.quotas.owners == {}
    assert unlimited.total == {}
    store.put(quota("a", "next", min={"cpu": "1"}))
    assert state(store, quotas).is_borrowing("a")
