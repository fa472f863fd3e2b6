from __future__ import annotations

from random import Random

from podium.cluster.images import ImageIndex
from podium.objects.core import ContainerImage, Node, NodeStatus
from tests.builders import node


def test_image_is_on_the_rows_whose_nodes_have_it():
    index = ImageIndex()
    index.add(0, node("n1", images={"app": 10, "db": 5}))
    index.add(2, node("n2", images={"app": 10}))
    assert [row for row in range(4) if index.get("app").is_on(row)] == [0, 2]
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
    assert presence(index, "app", 6) == [1, 5]


def test_image_listed_twice_by_one_node_is_removed_once():
    index = ImageIndex()
    twice = node("n1", status={"images": [{"names": ["app", "app"], "sizeBytes": 1}]})
    index.add(0, twice)
    index.remove(0, twice)
    assert index.get("app") is None


def node_with(*images: tuple[str, int]) -> Node:
    return Node(
        status=NodeStatus(images=tuple(ContainerImage(names=(name,), size_bytes=size) for name, size in images))
    )


def presence(index: ImageIndex, name: str, size: int) -> list[int]:
    state = index.get(name)
    assert state is not None
    return [row for row, is_there in enumerate(state.presence(size).tolist()) if is_there]


def test_presence_follows_nodes_that_get_and_lose_the_image() -> None:
    index, node = ImageIndex(), node_with(("app:1", 10))
    index.add(1, node)
    index.add(3, node)
    assert presence(index, "app:1", 4) == [1, 3]
    index.remove(3, node)
    index.add(0, node)
    assert presence(index, "app:1", 4) == [0, 1]


def test_presence_grows_with_the_rows() -> None:
    index, node = ImageIndex(), node_with(("app:1", 10))
    index.add(1, node)
    assert presence(index, "app:1", 2) == [1]
    index.add(5, node)
    assert presence(index, "app:1", 8) == [1, 5]
    assert presence(index, "app:1", 16) == [1, 5]


def test_the_size_is_what_the_first_node_reported() -> None:
    index = ImageIndex()
    index.add(0, node_with(("app:1", 10)))
    index.add(1, node_with(("app:1", 99)))
    state = index.get("app:1")
    assert state is not None
    assert (state.size_bytes, state.node_count) == (10, 2)


def test_an_image_that_is_nowhere_any_more_is_forgotten() -> None:
    index, node = ImageIndex(), node_with(("app:1", 10))
    index.add(0, node)
    index.remove(0, node)
    assert index.get("app:1") is None


def test_of_a_node_with_too_many_images_some_are_left_out_and_all_are_taken_back():
    index = ImageIndex()
    crowded = node("n1", images={f"app-{number}": 10 for number in range(10_001)})
    index.add(0, crowded)
    assert index.get("app-9999") is not None
    assert index.get("app-10000") is None
    index.remove(0, crowded)
    assert index.get("app-0") is None


def test_rows_are_right_whether_they_are_few_or_many():
    index, random, rows = ImageIndex(), Random(1), set()
    app = node("n1", images={"app": 10})
    index.add(2_000, app)
    copies = []
    for _ in range(3_000):
        row = random.randrange(2_000)
        if row in rows:
            index.remove(row, app)
        else:
            index.add(row, app)
        rows ^= {row}
        if len(rows) in (3, 70, 300):
            copies.append((index.copy(), sorted(rows)))
    for copied_index, expected_rows in [*copies, (index, sorted(rows))]:
        state = copied_index.get("app")
        assert [row for row in range(4_000) if state.is_on(row)] == [*expected_rows, 2_000]
        assert presence(copied_index, "app", 2_001) == [*expected_rows, 2_000]
        assert state.node_count == len(expected_rows) + 1


def test_an_image_of_all_nodes_takes_a_byte_for_each():
    index, app = ImageIndex(), node("n1", images={"app": 10})
    for row in range(5_000):
        index.add(row, app)
    assert index.get("app").presence(5_000).nbytes < 10_000
