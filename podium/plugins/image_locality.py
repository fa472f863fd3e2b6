"""ImageLocality: prefers nodes that already have the pod's images.

Runs at: Score.
Verdict: none.
Requeue: none.
Cost: one gather per image that some node has.
Source: kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go, v1.36.2 and v1.37.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.images import ImageState
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec, once_per_spec

_MIB: Final = 1024 * 1024
MIN_BYTES: Final = 23 * _MIB
"""The sum of image sizes, weighted by how widespread the images are, up to which a node scores 0."""
MAX_BYTES_PER_CONTAINER: Final = 1000 * _MIB


def normalized_image_name(name: str) -> str:
    """Return the name as nodes report it, with the tag `latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


@once_per_spec
def _image_names(spec: PodSpec) -> tuple[str, ...]:
    """Return the images of containers and volumes. An image that is used twice counts twice."""
    containers = [container.image for container in (*spec.init_containers, *spec.containers)]
    volumes = [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(normalized_image_name, containers + volumes))


def _weighted_bytes(image: ImageState, node_count: int) -> int:
    """Return the image size times the share of nodes that have it: pods must not pile up on the first such node."""
    return int(float(image.size_bytes) * (image.node_count / node_count))


class ImageLocality(fwk.TableScorePlugin, fwk.ScorePlugin):
    """Scores nodes by the size of the pod's images that are present."""

    def __init__(self, args: object, handle: fwk.Handle) -> None:
        self._handle = handle
        self._counts_volumes = handle.release.counts_image_volumes

    def _max_bytes(self, spec: PodSpec) -> int:
        count = len(_image_names(spec)) if self._counts_volumes else len(spec.init_containers) + len(spec.containers)
        return MAX_BYTES_PER_CONTAINER * count

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score from 0, if at most MIN_BYTES are present, to MAX_NODE_SCORE."""
        present = _present_images(snapshot, pod.spec)
        total = np.zeros(len(rows), np.int64)
        if not present:
            return total
        for image in present:
            total += _weighted_bytes(image, len(snapshot)) * image.presence(len(snapshot.nodes)).take(rows)
        bytes_max = self._max_bytes(pod.spec)
        bytes_above_min = np.where(total < MIN_BYTES, MIN_BYTES, np.minimum(total, bytes_max)) - MIN_BYTES
        scores: IntArray = fwk.MAX_NODE_SCORE * bytes_above_min // (bytes_max - MIN_BYTES)
        return scores

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node of the current snapshot."""
        snapshot = self._handle.snapshot()
        images = _present_images(snapshot, pod.spec)
        total = sum(_weighted_bytes(image, len(snapshot)) for image in images if image.is_on(node.row))
        bytes_max = self._max_bytes(pod.spec)
        bytes_above_min = (MIN_BYTES if total < MIN_BYTES else min(total, bytes_max)) - MIN_BYTES
        return fwk.MAX_NODE_SCORE * bytes_above_min // (bytes_max - MIN_BYTES)

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Return NODE: the score depends on the node's images and on `score_basis`."""
        return fwk.Scope.NODE

    def score_basis(self, spec: PodSpec, snapshot: Snapshot) -> tuple[int | None, ...]:
        """Return the weighted size of each image: it changes as the number of nodes that have the image changes."""
        images = map(snapshot.images.get, _image_names(spec))
        return tuple(None if image is None else _weighted_bytes(image, len(snapshot)) for image in images)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register no event: the plugin rejects no node."""
        return ()


def _present_images(snapshot: Snapshot, spec: PodSpec) -> list[ImageState]:
    images = map(snapshot.images.get, _image_names(spec))
    return [image for image in images if image is not None]
