"""What the searches for several pods of one cluster share: its nodes by shape, and worlds with a new node.

Cost: an answer to several questions costs each of these once; a world is a fork of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from podium.engine.cluster import Cluster
from podium.insight.applied_edits import apply_edits
from podium.insight.edits import Edit, EditKind
from podium.insight.new_nodes import NodeShapes
from podium.objects.core import Node
from podium.objects.resource_types import NAMESPACES, NODES
from podium.objects.topology_labels import BETA_REGION, BETA_ZONE, REGION, ZONE

_KEPT_MAX: Final = 8
"""The number of worlds that are kept for further questions."""


class SearchBasis:
    """A cluster in which fixes of pods are looked for. It must not change."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster.fork()
        self._worlds: dict[object, tuple[Edit, Cluster]] = {}
        self._scratch: Cluster | None = None

    @cached_property
    def shapes(self) -> NodeShapes:
        """The nodes by shape."""
        return NodeShapes(self.cluster.nodes)

    @cached_property
    def namespace_labels(self) -> dict[str, dict[str, str]]:
        """The labels of each namespace."""
        namespaces = self.cluster.store.objects(NAMESPACES).values()
        return {item.key: dict(item.metadata.labels) for item in namespaces}

    def with_node(self, key: object, make_edit: Callable[[], Edit]) -> tuple[Edit, Cluster]:
        """Return the edit that adds a node, and a world with it.

        Args:
            key: identifies the edit.
        """
        if (entry := self._worlds.pop(key, None)) is None:
            edit, world = make_edit(), self.cluster.fork()
            apply_edits(world, [edit])
            entry = edit, world
        self._worlds[key] = entry
        if len(self._worlds) > _KEPT_MAX:
            del self._worlds[next(iter(self._worlds))]
        return entry

    @contextmanager
    def world_after(self, edits: Sequence[Edit]) -> Iterator[Cluster]:
        """Yield the cluster after these edits, to be read within the context only.

        Edits of nodes that are there are taken back afterwards, so that their world needs no fork of its own.

        Raises:
            EditsDoNotApplyError: as its name says.
        """
        node_edits = [edit for edit in edits if not edit.is_of_pod]
        if not all(edit.object_kind == "Node" and edit.kind is not EditKind.ADD_NODE for edit in node_edits):
            world = self.cluster.fork()
            apply_edits(world, edits)
            yield world
            return
        # Whatever is raised leaves none: it might be edited in part.
        world, self._scratch = self._scratch or self.cluster.fork(), None
        former_nodes = [self.cluster.store.get(NODES, name) for name in dict.fromkeys(edit.name for edit in node_edits)]
        apply_edits(world, node_edits)
        yield world
        for node in former_nodes:
            assert node is not None
            edited_node = world.store.get(NODES, node.name)
            # A node that has been in another zone would come last in its own.
            if edited_node is None or _place(edited_node) != _place(node):
                return
            world.put(NODES, node)
        self._scratch = world


def _place(node: Node) -> Sequence[str | None]:
    """Return what decides about the place of a node among the others."""
    return [node.metadata.labels.get(key) for key in (ZONE, REGION, BETA_ZONE, BETA_REGION)]
