"""The images that are present on each node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.objects.core import Node

_FEW_ROWS: Final = 4
"""How many rows the smallest set holds."""

_SET_BYTES: Final = 32
"""What a row takes in a set at least, where it is one of the bytes of all rows otherwise."""


class ImageState:
    """One image by one of its names. The size is what the first node that had it reported.

    The rows are a set while they are few, since most names are those of few nodes, and a byte for each row once they
    are more or a score has asked for them: a set takes sixty times as much.
    """

    __slots__ = ("_few_rows", "_presence", "node_count", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.node_count = 0
        self._few_rows: set[int] = set()
        self._presence: NDArray[np.bool_] | None = None

    def is_on(self, row: int) -> bool:
        """Return whether the row's node has the image."""
        presence = self._presence
        return row in self._few_rows if presence is None else row < len(presence) and presence.item(row)

    def presence(self, size: int) -> NDArray[np.bool_]:
        """Return by row, for at least `size` rows, whether the node has the image. The caller must not write to it.

        Shape: at least `size` entries, one per row.
        """
        presence = self._presence
        if presence is None or len(presence) < size:
            larger = np.zeros(size, np.bool_)
            if presence is None:
                larger[list(self._few_rows)] = True
                self._few_rows = set()
            else:
                larger[: len(presence)] = presence
            presence = self._presence = larger
        return presence

    def set(self, row: int, is_there: bool) -> None:
        """Record whether the row's node has the image."""
        if self.is_on(row) == is_there:
            return
        self.node_count += 1 if is_there else -1
        presence = self._presence
        if presence is None and self.node_count <= max(_FEW_ROWS, row // _SET_BYTES):
            self._few_rows ^= {row}
            return
        if presence is None or row >= len(presence):
            # In steps: a node more must not copy the rows of each of its images.
            presence = self.presence(max(row, *self._few_rows, _FEW_ROWS) * 5 // 4 + 2)
        presence[row] = is_there

    def copy(self) -> ImageState:
        """Return an independent copy."""
        twin = ImageState(self.size_bytes)
        twin.node_count, twin._few_rows = self.node_count, set(self._few_rows)
        twin._presence = None if self._presence is None else self._presence.copy()
        return twin


_NAMES_MAX: Final = 10_000


def _names(node: Node) -> Iterator[tuple[str, int]]:
    """Return the names of the node's images, each with the image's size."""
    names = ((name, image.size_bytes) for image in node.status.images for name in image.names)
    return islice(names, _NAMES_MAX)


class ImageIndex:
    """Rows by image name.

    Source: kubernetes pkg/scheduler/backend/cache/cache.go (addNodeImageStates), v1.36.2.
    Differs: of a node with more than 10,000 names of images the others are left out; kubelets report 50 images.
    """

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._shared: set[str] = set()
        """Images whose states are shared with a copy: they are copied before they are written."""

    def add(self, row: int, node: Node) -> None:
        """Mark the node's images as present on the row."""
        for name, size_bytes in _names(node):
            state = self._own(name)
            if state is None:
                state = self._states[name] = ImageState(size_bytes)
            state.set(row, True)

    def remove(self, row: int, node: Node) -> None:
        """Undo an earlier `add`. An image that no node has any more is forgotten."""
        for name, _ in _names(node):
            state = self._own(name)
            if state is not None:
                state.set(row, False)
                if not state.node_count:
                    del self._states[name]

    def get(self, name: str) -> ImageState | None:
        """Return the image's nodes and size; None if no node has it."""
        return self._states.get(name)

    def copy(self) -> ImageIndex:
        """Return an independent copy. Cost: grows with the number of images, not with that of nodes."""
        twin = ImageIndex()
        twin._states = dict(self._states)
        twin._shared = set(self._states)
        self._shared |= twin._shared
        return twin

    def _own(self, name: str) -> ImageState | None:
        """Return the state of an image, copied first if it is shared."""
        state = self._states.get(name)
        if state is not None and name in self._shared:
            self._shared.discard(name)
            state = self._states[name] = state.copy()
        return state
