from __future__ import annotations

from podium.cluster.images import ImageIndex
from tests.builders import node


def test_image_is_on_the_rows_whose_nodes_have_it():
    index = ImageIndex()
    index.add(0, node("n1", images={"app": 10, "db": 5}))
    index.add(2, node("n2", images={"app": 10}))
    assert index.get("app").rows == {0, 2}
    assert list(index.get("app").presence(4)) == [True, False, True, False]
    assert index.get("nothing") is None


def test_every_name_of_an_image_finds_it():
    index = ImageIndex()
    index.add(0, node("n1", status={"images": [{"names": ["app:1", "app@sha256:0"], "sizeBytes": 7}]}))
    assert index.get("app:1").size_bytes == index.get("app@sha256:0").size_bytes == 7


def test_size_is_what_the_first_node_said_until_no_node_has_the_image():
    index = ImageIndex()
    first, second = node("n1", images={"app": 10}), node("n2", images={"app": 20})
    index.add(0, first)
    index.add(1, second)
    index.remove(0, first)
    assert index.get("app").size_bytes == 10
    index.remove(1, second)
    assert index.get("app") is None
    index.add(1, second)
    assert index.get("app").size_bytes == 20


def test_presence_is_kept_up_to_date_once_it_was_asked_for():
    index = ImageIndex()
    first, later = node("n1", images={"app": 10}), node("n2", images={"app": 10})
    index.add(0, first)
    assert list(index.get("app").presence(2)) == [True, False]
    index.add(1, later)
    index.remove(0, first)
    assert list(index.get("app").presence(2)) == [False, True]
    index.add(5, first)
    assert list(index.get("app").presence(6)) == [False, True, False, False, False, True]


def test_image_listed_twice_by_one_node_is_removed_once():
    index = ImageIndex()
    twice = node("n1", status={"images": [{"names": ["app", "app"], "sizeBytes": 1}]})
    index.add(0, twice)
    index.remove(0, twice)
    assert index.get("app") is None
