from __future__ import annotations

import pytest

from podium.cluster.node_tree import NodeTree, zone_of
from tests.builders import node


def tree(*places: tuple[str, str]) -> NodeTree:
    node_tree = NodeTree()
    for name, zone in places:
        node_tree.put(node(name, zone=zone))
    return node_tree


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "a"}, ":\x00:a"),
        ({"topology.kubernetes.io/region": "r"}, "r:\x00:"),
        ({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "a"}, "r:\x00:a"),
        ({"topology.kubernetes.io/zone": "new", "failure-domain.beta.kubernetes.io/zone": "old"}, ":\x00:old"),
        ({"topology.kubernetes.io/region": "new", "failure-domain.beta.kubernetes.io/region": "old"}, "old:\x00:"),
        ({"topology.kubernetes.io/zone": "new", "failure-domain.beta.kubernetes.io/zone": ""}, ""),
    ],
)
def test_zone_is_region_and_zone_the_older_labels_first(labels, zone):
    assert zone_of(node("n1", labels=labels)) == zone


def test_order_takes_one_of_each_zone_in_turn():
    node_tree = tree(("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c"))
    assert node_tree.order() == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_same_zone_name_in_two_regions_is_two_zones():
    node_tree = NodeTree()
    for name, region in (("n1", "r1"), ("n2", "r1"), ("n3", "r2")):
        node_tree.put(node(name, zone="a", region=region))
    assert node_tree.order() == ["n1", "n3", "n2"]


def test_empty_tree_has_no_order():
    assert NodeTree().order() == []


def test_node_put_again_keeps_its_place():
    node_tree = tree(("a1", "a"), ("a2", "a"), ("a1", "a"))
    assert node_tree.order() == ["a1", "a2"]


def test_node_that_changes_zone_goes_to_the_end_of_the_new_one():
    node_tree = tree(("a1", "a"), ("a2", "a"), ("b1", "b"), ("a1", "b"))
    assert node_tree.order() == ["a2", "b1", "a1"]


def test_zone_that_loses_its_last_node_returns_as_the_last_zone():
    node_tree = tree(("a1", "a"), ("b1", "b"), ("b2", "b"))
    node_tree.remove("a1")
    assert node_tree.order() == ["b1", "b2"]
    node_tree.put(node("a1", zone="a"))
    assert node_tree.order() == ["b1", "a1", "b2"]
