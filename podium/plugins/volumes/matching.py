"""Finding an existing volume for an unbound claim.

Owns which volumes a claim may take and which of them it takes: one pre-bound to it, otherwise the smallest. Never
assumes anything.

Source: component-helpers storage/volume/pv_helpers.go (FindMatchingVolume), v0.36.2.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from podium.cluster import IntArray, Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.framework.contract.status import PluginError
from podium.objects.core import RawQuantity
from podium.objects.errors import FieldError
from podium.objects.quantity import NANO, QuantityError, parse
from podium.objects.selectors import EVERYTHING, Selector, compile_selector
from podium.objects.storage import PersistentVolume, PersistentVolumeClaim
from podium.plugins.volumes.claims import class_of_claim, class_of_volume
from podium.plugins.volumes.volume_nodes import node_affinity_of

STORAGE: Final = "storage"
_FILESYSTEM: Final = "Filesystem"
_AVAILABLE: Final = "Available"

NO_VOLUME: Final = -1


@functools.lru_cache(maxsize=4096)
def nano(raw: RawQuantity) -> int:
    """A quantity as an exact integer, in units of 10^-9.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    quantity = parse(raw)
    return quantity.unscaled * int(10 ** (quantity.exponent - NANO)) if quantity.unscaled else 0


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """The storage request of the claim, in the unit of `nano`.

    Raises:
        PluginError: the request cannot be parsed.
    """
    try:
        return nano(claim.spec.resources.requests.get(STORAGE, 0))
    except QuantityError as error:
        raise PluginError(f'requested storage of claim "{claim.key}" cannot be read: {error}') from error


def is_kept_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is bound or pre-bound to the claim."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and reference.name == claim.metadata.name
        and reference.namespace == claim.metadata.namespace
        and reference.uid in ("", claim.metadata.uid)
    )


@dataclass(frozen=True)
class Choice:
    """The volumes that a claim may take, regardless of the node.

    Attributes:
        kept: those pre-bound to the claim, in list order. Only the first one that is not taken is considered.
        free: the others, the smallest first.
    """

    kept: tuple[PersistentVolume, ...]
    free: tuple[PersistentVolume, ...]

    @functools.cached_property
    def free_by_label(self) -> tuple[Mapping[str, Mapping[str, int]], Sequence[int]]:
        """By label and value the first of the free volumes that require only that, and all that require otherwise."""
        by_label: dict[str, dict[str, int]] = {}
        others: list[int] = []
        for place, volume in enumerate(self.free):
            affinity = node_affinity_of(volume)
            if affinity is None or affinity.only_label is None:
                others.append(place)
            else:
                key, value = affinity.only_label
                by_label.setdefault(key, {}).setdefault(value, place)
        return by_label, others


def choice_for(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> Choice:
    """Which volumes of its class the claim may take.

    Raises:
        PluginError: the claim's selector or its request cannot be parsed.
    """
    wanted = requested_nano(claim)
    selector = _selector(claim)
    kept: list[PersistentVolume] = []
    free: list[tuple[int, PersistentVolume]] = []
    for volume in volumes:
        reference = volume.spec.claim_ref
        if reference is not None and not is_kept_for(volume, claim):
            continue
        size = _capacity_nano(volume)
        if size is None or size < wanted or not _is_suitable(volume, claim):
            continue
        if reference is not None:
            kept.append(volume)
        elif _is_free(volume, claim, selector):
            free.append((size, volume))
    free.sort(key=lambda each: each[0])
    return Choice(tuple(kept), tuple(volume for _, volume in free))


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return compile_selector(claim.spec.selector)
    except FieldError as error:
        raise PluginError(f"error creating internal label selector for claim: {claim.key}: {error}") from error


def _capacity_nano(volume: PersistentVolume) -> int | None:
    """The volume's capacity; None if it cannot be parsed. Such a volume suits no claim."""
    try:
        return nano(volume.spec.capacity.get(STORAGE, 0))
    except QuantityError:
        return None


def _is_suitable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        (claim.spec.volume_mode or _FILESYSTEM) == (volume.spec.volume_mode or _FILESYSTEM)
        and (claim.spec.volume_attributes_class_name or "") == (volume.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return (
        volume.status.phase == _AVAILABLE
        and selector.matches(volume.metadata.labels)
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def choose(choice: Choice, labels: Mapping[str, str], taken: Collection[str]) -> PersistentVolume | None:
    """The volume that the claim takes on a node with those labels; `taken` names volumes of other claims."""
    for volume in choice.kept:
        if volume.metadata.name not in taken:
            return volume if _covers(volume, labels) else None
    for volume in choice.free:
        if volume.metadata.name not in taken and _covers(volume, labels):
            return volume
    return None


def _covers(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    affinity = node_affinity_of(volume)
    return affinity is None or affinity.matches(labels)


class RowChoices:
    """The volumes that claims take on each of many rows, one claim after the other."""

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self._snapshot = snapshot
        self._rows = rows
        self._taken: list[IntArray] = []
        self._number: dict[str, int] = {}

    def choose(self, choice: Choice) -> BoolArray:
        """Choose for the next claim, as `choose` does. Returns which rows have a volume for it.

        Shape: one entry per row that the choices were made for.
        """
        taken = np.full(len(self._rows), NO_VOLUME, np.int64)
        open_rows = np.ones(len(self._rows), np.bool_)
        for volume in choice.kept:
            number = self._number_of(volume)
            decided = open_rows & self._not_taken(number)
            taken[decided & self._covering(volume)] = number
            open_rows &= ~decided
        if any((earlier != NO_VOLUME).any() for earlier in self._taken):
            for volume in choice.free if open_rows.any() else ():
                number = self._number_of(volume)
                hits = open_rows & self._covering(volume) & self._not_taken(number)
                taken[hits] = number
                open_rows &= ~hits
        elif choice.free and open_rows.any():
            numbers = np.array([*map(self._number_of, choice.free), NO_VOLUME])
            taken = np.where(open_rows, numbers[self._first_covering(choice)], taken)
        self._taken.append(taken)
        found: BoolArray = taken != NO_VOLUME
        return found

    def _first_covering(self, choice: Choice) -> IntArray:
        """By row the place of the first of the free volumes that covers it; their number if none does.

        Cost: one pass over the rows for each label, not for each of hundreds of volumes.
        """
        by_label, others = choice.free_by_label
        first = np.full(len(self._rows), len(choice.free), np.int64)
        for key, places in by_label.items():
            column = self._snapshot.label_column(key)
            by_id = np.full(len(column.values), len(choice.free), np.int64)
            for value, place in places.items():
                if (known := column.id_of(value)) is not None:
                    by_id[known] = place
            np.minimum(first, by_id[column.ids.take(self._rows)], out=first)
        for place in others:
            first[self._covering(choice.free[place]) & (first > place)] = place
        return first

    def _number_of(self, volume: PersistentVolume) -> int:
        return self._number.setdefault(volume.metadata.name, len(self._number))

    def _not_taken(self, number: int) -> BoolArray:
        free = np.ones(len(self._rows), np.bool_)
        for taken in self._taken:
            free &= taken != number
        return free

    def _covering(self, volume: PersistentVolume) -> BoolArray:
        affinity = node_affinity_of(volume)
        return np.ones(len(self._rows), np.bool_) if affinity is None else affinity.matching(self._snapshot, self._rows)
