"""Finding an existing volume for an unbound claim.

Owns which volumes a claim may take and which of them it takes: one pre-bound to it, otherwise the smallest. Never
assumes anything.

Source: component-helpers storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    covered,
    covers,
    nano,
)

_FILESYSTEM: Final = "Filesystem"


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """The storage request of the claim, in the unit of `nano`.

    Raises:
        PluginError: the request cannot be parsed.
    """
    try:
        return nano(claim.spec.resources.requests.get(STORAGE, 0))
    except QuantityError as error:
        raise fwk.PluginError(f'requested storage of claim "{claim.key}" cannot be read: {error}') from error


def is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound or pre-bound to the claim."""
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
        kept: those pre-bound to the claim, in list order. Only the first one that is not taken is considered.
        free: the others, alike ones together, the smallest first; a live view.
        hidden: volumes by name that look free and are not.
    """

    kept: tuple[PersistentVolume, ...]
    free: tuple[AlikeVolumes, ...]
    hidden: Mapping[str, PersistentVolume]

    def all(self) -> list[PersistentVolume]:
        """All of them, in the order in which a claim takes them."""
        sized = sorted((each.size_nano, *item) for each in self.free for item in each.volumes.items())
        return [*self.kept, *(volume for *_, volume in sized if volume.metadata.name not in self.hidden)]

    def covered(self, snapshot: Snapshot, rows: Rows) -> BoolArray:
        """Which of the rows have a volume for the claim. Shape: one entry per row of `rows`."""
        if self.kept:
            return covered(self.kept[0], snapshot, rows)
        found = np.zeros(len(rows), np.bool_)
        for alike in self.free:
            found |= alike.covered(snapshot, rows, self.hidden)
        return found


def choice_for(
    claim: PersistentVolumeClaim,
    index: VolumeIndex,
    assumed: Iterable[PersistentVolume] = (),
) -> Choice:
    """Which volumes of its class the claim may take.

    Args:
        assumed: volumes that are assumed to be in another state than in the index.

    Raises:
        PluginError: the claim's selector or its request cannot be parsed.
    """
    wanted, selector, name = requested_nano(claim), _selector(claim), class_of_claim(claim)
    hidden = {volume.metadata.name: volume for volume in assumed}
    known = {volume.metadata.name: volume for volume in index.of(kept_for(claim.key))}
    kept = (volume for volume in {**known, **hidden}.values() if class_of_volume(volume) == name)
    free = (
        each
        for each in index.free(name)
        if _is_suitable(each.example, wanted, claim) and _may_be_taken(each.example, claim, selector)
    )
    return Choice(
        tuple(volume for volume in kept if is_kept_for(volume, claim) and _is_suitable(volume, wanted, claim)),
        tuple(sorted(free, key=lambda each: each.size_nano)),
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
        and (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
        and (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _may_be_taken(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return selector.matches(volume.metadata.labels) and set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def choose(choice: Choice, labels: Mapping[str, str], taken: AbstractSet[str]) -> PersistentVolume | None:
    """The volume that the claim takes on a node with those labels; `taken` names volumes of other claims."""
    for volume in choice.kept:
        if volume.metadata.name not in taken:
            return volume if covers(volume, labels) else None
    size_nano, first = -1, None
    for alike in choice.free:
        if first is not None and alike.size_nano > size_nano:
            break
        found = alike.first(labels, taken | choice.hidden.keys())
        if found is not None and (first is None or found[0] < first[0]):
            size_nano, first = alike.size_nano, found
    return None if first is None else first[1]


def rows_with_volumes(choices: Sequence[Choice], snapshot: Snapshot, rows: Rows) -> Sequence[BoolArray]:
    """Which of the rows have a volume for each claim, one claim after the other, as `choose` finds them.

    Shape: one entry per row of `rows`.
    Cost: as `Choice.covered`, and for several claims a few look-ups for each row that more than one has a volume on.
    """
    found = [each.covered(snapshot, rows) for each in choices]
    if len(found) < 2:
        return found
    is_contested = np.sum(found, axis=0) > 1
    for place in is_contested.nonzero()[0].tolist():
        labels, taken = snapshot.node(int(rows[place])).labels, set[str]()
        for has, choice in zip(found, choices, strict=True):
            volume = choose(choice, labels, taken)
            has[place] = volume is not None
            if volume is not None:
                taken.add(volume.metadata.name)
    return found
