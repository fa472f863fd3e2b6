from __future__ import annotations

from podium.client.informer import Informer
from podium.objects.core import Node
from podium.objects.index import Index
from podium.objects.resource_types import NODES
from tests.builders import node


def zone_of(item: Node) -> str:
    return item.metadata.labels.get("topology.kubernetes.io/zone", "")


def names(index: Index[Node], text: str) -> list[str]:
    return [item.name for item in index.of(text)]


def test_objects_are_found_by_what_they_say() -> None:
    index = Index(zone_of)
    for item in (node("n1", zone="a"), node("n2", zone="b"), node("n3", zone="a")):
        index.put(item)
    assert names(index, "a") == ["n1", "n3"]
    assert names(index, "c") == []


def test_an_object_that_says_something_else_is_found_there() -> None:
    index = Index(zone_of)
    index.put(node("n1", zone="a"))
    index.replace(node("n1", zone="a"), node("n1", zone="b"))
    assert (names(index, "a"), names(index, "b")) == ([], ["n1"])


def test_the_newest_state_is_found() -> None:
    index = Index(zone_of)
    index.put(node("n1", zone="a"))
    index.replace(node("n1", zone="a"), node("n1", zone="a", unschedulable=True))
    [stored_node] = index.of("a")
    assert stored_node.spec.unschedulable


def test_what_is_gone_is_not_found() -> None:
    index = Index(zone_of)
    index.put(node("n1", zone="a"))
    index.drop(node("n1", zone="a"))
    assert names(index, "a") == []


def test_an_informers_index_follows_it_from_whenever_it_was_asked_for() -> None:
    informer = Informer(NODES, lambda resource, error: None)
    informer.put(node("n1", zone="a"))
    index = Index(zone_of)
    informer.keep(index)
    informer.put(node("n2", zone="a"))
    assert names(index, "a") == ["n1", "n2"]
    informer.put(node("n2", uid="another", zone="b"))  # deleted and made anew unseen
    assert (names(index, "a"), names(index, "b")) == (["n1"], ["n2"])
    informer.drop(node("n1", zone="a"))
    assert names(index, "a") == []
