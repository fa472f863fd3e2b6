"""Which images are present on which nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.kube.objects import Node


@dataclass(slots=True)
class ImageState:
    """One image by one of its names. The size is what the first node that had it reported."""

    size_bytes: int
    rows: set[int] = field(default_factory=set)


class ImageIndex:
    """Rows by image name.

    Source: kubernetes pkg/scheduler/backend/cache/cache.go (addNodeImageStates), v1.36.2.
    """

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}

    def add(self, row: int, node: Node) -> None:
        """Mark the node's images as present on the row."""
        for image in node.status.images:
            for name in image.names:
                self._states.setdefault(name, ImageState(image.size_bytes)).rows.add(row)

    def remove(self, row: int, node: Node) -> None:
        """Take back an earlier `add`; an image that is nowhere any more is forgotten."""
        for image in node.status.images:
            for name in image.names:
                state = self._states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del self._states[name]

    def get(self, name: str) -> ImageState | None:
        """Where the image is and how large, None if no node has it."""
        return self._states.get(name)
