"""Finding an existing volume for an unbound claim.

Owns which volumes a claim may take and which of them it takes: one pre-bound to it, otherwise the smallest. Never
assumes anything.

Source: component-helpers storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework import contract as fwk
from podium.objects.errors import FieldError
from podium.objects.quantity import QuantityError
from podium.objects.selectors import EVERYTHING, Selector, compile_selector
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from podium.plugins.volumes.claims import class_of_claim, class_of_volume, kept_for
from podium.plugins.volumes.free_volumes import (
    STORAGE,
    AlikeVolumes,
    VolumeIndex,
    capacity_nano,
    coverage,
    covers,
    nano,
)

_FILESYSTEM: Final = "Filesystem"


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """Return the storage request of the claim, in the unit of `nano`.

    Raises:
        PluginError: the request cannot be parsed.
    """
    try:
        return nano(claim.spec.resources.requests.get(STORAGE, 0))
    except QuantityError as error:
        raise fwk.PluginError(f'requested storage of claim "{claim.key}" cannot be read: {error}') from error


def is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume is bound or pre-bound to the claim."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The volumes that a claim may take, regardless of the node.

    Attributes:
        reserved_volumes: those pre-bound to the claim, in list order. Only the first free one is considered.
        free: the others, alike ones together, the smallest first; a live view.
        hidden: volumes by name that look free and are not.
    """

    reserved_volumes: tuple[PersistentVolume, ...]
    free: tuple[AlikeVolumes, ...]
    hidden: Mapping[str, PersistentVolume]

    def all(self) -> list[PersistentVolume]:
        """Return all of them, in the order in which a claim takes them."""
        sized_volumes = sorted((group.size_nano, *item) for group in self.free for item in group.volumes.items())
        return [
            *self.reserved_volumes,
            *(volume for *_, volume in sized_volumes if volume.metadata.name not in self.hidden),
        ]

    def coverage(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Return which of the rows have a volume for the claim. Shape: one entry per row of `rows`."""
        has_volume = np.zeros(len(rows), np.bool_)
        for _, has_size in self.by_size(snapshot, rows):
            has_volume |= has_size
        return has_volume

    def by_size(self, snapshot: Snapshot, rows: Rows) -> Iterator[tuple[PersistentVolume, BoolArray]]:
        """Yield a volume of each size, with the rows on which the claim takes one of that size, as `choose` does.

        Shape: a mask has one entry per row of `rows`.
        Cost: a pass over the rows for each label and size.
        """
        # As upstream: a volume that is kept for the claim is the only one that it may take.
        if self.reserved_volumes:
            yield self.reserved_volumes[0], coverage(self.reserved_volumes[0], snapshot, rows)
            return
        is_open = np.ones(len(rows), np.bool_)
        for alike in self.free:
            has_volume = is_open & alike.coverage(snapshot, rows, self.hidden)
            is_open &= ~has_volume
            yield alike.example, has_volume


def choice_for(
    claim: PersistentVolumeClaim,
    index: VolumeIndex,
    assumed_volumes: Iterable[PersistentVolume] = (),
) -> Choice:
    """Return which volumes of its class the claim may take.

    Args:
        assumed_volumes: volumes that are assumed to be in another state than in the index.

    Raises:
        PluginError: the claim's selector or its request cannot be parsed.
    """
    request_nano, selector, name = requested_nano(claim), _selector(claim), class_of_claim(claim)
    # An assumed volume is promised to another claim, though the index does not know yet.
    hidden = {volume.metadata.name: volume for volume in assumed_volumes}
    indexed_volumes = {volume.metadata.name: volume for volume in index.of(kept_for(claim.key))}
    # The assumed state counts, where there is one.
    reserved_volumes = (volume for volume in {**indexed_volumes, **hidden}.values() if class_of_volume(volume) == name)
    free = (
        group
        for group in index.free(name)
        if _is_suitable(group.example, request_nano, claim) and _may_be_taken(group.example, claim, selector)
    )
    return Choice(
        tuple(
            volume
            for volume in reserved_volumes
            if is_kept_for(volume, claim) and _is_suitable(volume, request_nano, claim)
        ),
        tuple(sorted(free, key=lambda group: group.size_nano)),
        hidden,
    )


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_selector(claim.spec.selector)
    except FieldError as error:
        raise fwk.PluginError(f"error creating internal label selector for claim: {claim.key}: {error}") from error


def _is_suitable(volume: PersistentVolume, wanted_nano: int, claim: PersistentVolumeClaim) -> bool:
    size_nano = capacity_nano(volume)
    return (
        size_nano is not None
        and size_nano >= wanted_nano
        # The API's defaults: an absent mode means a file system.
        and (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
        and (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _may_be_taken(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return selector.matches(volume.metadata.labels) and set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def choose(choice: Choice, labels: Mapping[str, str], taken_names: AbstractSet[str]) -> PersistentVolume | None:
    """Return the volume that the claim takes on a node with those labels; `taken_names` are volumes of other claims."""
    for volume in choice.reserved_volumes:
        if volume.metadata.name not in taken_names:
            return volume if covers(volume, labels) else None
    size_nano, first = -1, None
    for alike in choice.free:
        # Groups are sorted by size, so no later one has a smaller volume.
        if first is not None and alike.size_nano > size_nano:
            break
        candidate = alike.first(labels, taken_names | choice.hidden.keys())
        if candidate is not None and (first is None or candidate[0] < first[0]):
            size_nano, first = alike.size_nano, candidate
    return None if first is None else first[1]


def rows_with_volumes(choices: Sequence[Choice], snapshot: Snapshot, rows: Rows) -> Sequence[BoolArray]:
    """Return which of the rows have a volume for each claim, one claim after the other, as `choose` finds them.

    Shape: one entry per row of `rows`.
    Cost: as `Choice.coverage`, and for several claims a few look-ups for each row that more than one has a volume on.
    """
    masks = [choice.coverage(snapshot, rows) for choice in choices]
    if len(masks) < 2:
        return masks
    # Claims can only take volumes from each other where several have one.
    is_contested = np.sum(masks, axis=0) > 1
    for place in is_contested.nonzero()[0].tolist():
        labels, taken_names = snapshot.node(int(rows[place])).labels, set[str]()
        for has_volume, choice in zip(masks, choices, strict=True):
            volume = choose(choice, labels, taken_names)
            has_volume[place] = volume is not None
            if volume is not None:
                taken_names.add(volume.metadata.name)
    return masks
