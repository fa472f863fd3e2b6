from __future__ import annotations

from podium.cluster.images import ImageIndex
from podium.kube.objects import ContainerImage, Node, NodeStatus


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
    assert (state.size_bytes, state.rows) == (10, {0, 1})


def test_an_image_that_is_nowhere_any_more_is_forgotten() -> None:
    index, node = ImageIndex(), node_with(("app:1", 10))
    index.add(0, node)
    index.remove(0, node)
    assert index.get("app:1") is None
