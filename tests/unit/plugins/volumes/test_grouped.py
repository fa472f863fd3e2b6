from __future__ import annotations

from podium.client.informer import Informer
from podium.engine.store import ObjectStore
from podium.objects.index import Index
from podium.objects.resource_types import PERSISTENT_VOLUMES
from podium.plugins.volumes.claims import class_of_volume
from podium.plugins.volumes.grouped import group_by, index_of
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import volume

ONE, OTHER, THIRD = volume("one"), volume("other", storage_class="fast"), volume("third")


def test_a_lister_without_indexes_is_looked_through() -> None:
    of_class = group_by(Listed([ONE, OTHER, THIRD]), class_of_volume)
    assert list(of_class("slow")) == [ONE, THIRD]
    assert list(of_class("none")) == []


def test_an_informer_keeps_an_index() -> None:
    informer = Informer(PERSISTENT_VOLUMES, lambda resource, error: None)
    of_class = group_by(informer, class_of_volume)
    for item in (ONE, OTHER, THIRD):
        informer.put(item)
    assert list(of_class("slow")) == [ONE, THIRD]
    informer.drop(ONE)
    assert list(of_class("slow")) == [THIRD]


def test_an_index_of_listed_objects_is_made_anew_only_after_a_change() -> None:
    store = ObjectStore((PERSISTENT_VOLUMES, item) for item in (ONE, OTHER))
    index = index_of(store.lister(PERSISTENT_VOLUMES), lambda: Index(class_of_volume))
    first = index()
    assert index() is first
    store.put(PERSISTENT_VOLUMES, THIRD)
    assert list(index().of("slow")) == [ONE, THIRD]
