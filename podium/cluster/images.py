"""The images that are present on each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.objects.core import Node


@dataclass(slots=True)
class ImageState:
    """One image by one of its names. The size is what the first node that had it reported."""

    size_bytes: int
    rows: set[int] = field(default_factory=set)
    _presence: NDArray[np.bool_] | None = None

    def presence(self, size: int) -> NDArray[np.bool_]:
        """Return by row, for at least `size` rows, whether the node has the image. The caller must not write to it.

        Cost: one pass over the rows that have it on the first call; updated incrementally from then on.
        Shape: at least `size` entries, one per row.
        """
        if self._presence is None or len(self._presence) < size:
            self._presence = np.zeros(size, np.bool_)
            self._presence[list(self.rows)] = True
        return self._presence

    def set(self, row: int, is_there: bool) -> None:
        """Record whether the row's node has the image."""
        if is_there:
            self.rows.add(row)
        else:
            self.rows.discard(row)
        if self._presence is not None:
            if row < len(self._presence):
                self._presence[row] = is_there
            else:
                self._presence = None


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
                if not state.rows:
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
            state = self._states[name] = ImageState(state.size_bytes, set(state.rows))
        return state
