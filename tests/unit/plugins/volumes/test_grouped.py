from __future__ import annotations

from podium.client.informer import Informer
from podium.objects.resource_types import PERSISTENT_VOLUMES
from podium.plugins.volumes.claims import class_of_volume
from podium.plugins.volumes.grouped import grouped
from tests.unit.plugins.clusters import Listed
from tests.unit.plugins.storage import volume

ONE, OTHER, THIRD = volume("one"), volume("other", storage_class="fast"), volume("third")


def test_a_lister_without_indexes_is_looked_through() -> None:
    of_class = grouped(Listed([ONE, OTHER, THIRD]), class_of_volume)
    assert list(of_class("slow")) == [ONE, THIRD]
    assert list(of_class("none")) == []


def test_an_informer_keeps_an_index() -> None:
    informer = Informer(PERSISTENT_VOLUMES, lambda resource, error: None)
    of_class = grouped(informer, class_of_volume)
    for each in (ONE, OTHER, THIRD):
        informer.put(each)
    assert list(of_class("slow")) == [ONE, THIRD]
    informer.drop(ONE)
    assert list(of_class("slow")) == [THIRD]
