from __future__ import annotations

from podium.sandbox.feeds import Feed
from podium.sandbox.resources import resource_named
from podium.sandbox.store import Store
from tests import manifests

PODS = resource_named("pods")


def test_what_a_compaction_hides_from_a_reader_is_told_all_the_same() -> None:
    store = Store()
    feed = Feed(store.collection(PODS))
    for name in ("a", "b", "c"):
        store.create(manifests.pod(name))
    assert changes(feed) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    for name in ("a", "b"):
        store.delete("pods", name, namespace="default")
    store.create(manifests.pod("b"))
    store.compact()
    assert changes(feed) == [("DELETED", "a"), ("DELETED", "b"), ("ADDED", "c"), ("ADDED", "b")]
    assert changes(feed) == []


def changes(feed: Feed) -> list[tuple[str, str]]:
    return [(change.type, change.record.key[1]) for change in feed.read()]
