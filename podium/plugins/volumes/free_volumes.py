"""The free volumes, which no claim has, grouped by the properties that claims compare and by their nodes.

Owns the order in which they are offered: the smallest first, of equal ones the one that has been free for longest.
Never decides what suits a claim; `matching` does, for one volume in place of all that are alike.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.labels import LabelColumn
from podium.cluster.snapshot import BoolArray
from podium.objects.index import Index
from podium.objects.meta import RawQuantity
from podium.objects.quantity import NANO, QuantityError, parse
from podium.objects.storage import PersistentVolume
from podium.plugins.volumes.claims import class_of_volume, place_of_volume
from podium.plugins.volumes.volume_nodes import node_affinity_of

STORAGE: Final = "storage"
_AVAILABLE: Final = "Available"


@functools.lru_cache(maxsize=4096)
def nano(raw: RawQuantity) -> int:
    """Return a quantity as an exact integer, in units of 10^-9.

    Raises:
        QuantityError: `raw` is not a quantity.
    """
    quantity = parse(raw)
    return quantity.unscaled * int(10 ** (quantity.exponent - NANO)) if quantity.unscaled else 0


def capacity_nano(volume: PersistentVolume) -> int | None:
    """Return the volume's capacity in the unit of `nano`; None if it cannot be parsed. Such a volume suits no claim."""
    try:
        # A volume without a capacity holds nothing, as upstream.
        return nano(volume.spec.capacity.get(STORAGE, 0))
    except QuantityError:
        return None


def covers(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Return whether a node with those labels can use the volume."""
    affinity = node_affinity_of(volume)
    return affinity is None or affinity.matches(labels)


def coverage(volume: PersistentVolume, snapshot: Snapshot, rows: Rows) -> BoolArray:
    """Return which of the rows can use the volume. Shape: one entry per row of `rows`."""
    affinity = node_affinity_of(volume)
    return np.ones(len(rows), np.bool_) if affinity is None else affinity.matching(snapshot, rows)


def _only_label(volume: PersistentVolume) -> tuple[str, str] | None:
    affinity = node_affinity_of(volume)
    return None if affinity is None else affinity.only_label


class _Labelled:
    """Volumes that require one value of the same label and nothing else, by this value and their numbers."""

    def __init__(self) -> None:
        self.by_value: dict[str, dict[int, PersistentVolume]] = {}
        self._column: LabelColumn | None = None
        self._has: BoolArray = np.zeros(0, np.bool_)
        self._changed: set[str] = set()

    def add(self, value: str, number: int, volume: PersistentVolume) -> None:
        self.by_value.setdefault(value, {})[number] = volume
        self._changed.add(value)

    def drop(self, value: str, number: int) -> None:
        volumes = self.by_value[value]
        del volumes[number]
        if not volumes:
            del self.by_value[value]
        self._changed.add(value)

    def volume_mask(self, column: LabelColumn, hidden: Mapping[str, PersistentVolume]) -> BoolArray:
        """Return by id of the label's value whether it has a volume besides the hidden ones. The array is read-only."""
        # A new column, or one with more values: everything is looked up again.
        if column is not self._column or len(column.values) != len(self._has):
            self._column, self._has = column, np.zeros(len(column.values), np.bool_)
            self._changed.update(self.by_value)
        for value in self._changed:
            if (value_id := column.id_of(value)) is not None:
                self._has[value_id] = value in self.by_value
        self._changed.clear()
        if not hidden:
            return self._has
        has_volume = self._has.copy()
        # Only values of hidden volumes can lose their last one.
        for key, value in filter(None, map(_only_label, hidden.values())):
            if key == column.key and value in self.by_value and (value_id := column.id_of(value)) is not None:
                has_volume[value_id] = any(
                    volume.metadata.name not in hidden for volume in self.by_value[value].values()
                )
        return has_volume


class AlikeVolumes:
    """Free volumes that no claim can tell apart, except by the nodes that can use them.

    Attributes:
        example: one of them.
        size_nano: the capacity of each, in the unit of `nano`.
        volumes: all of them by number, the lower ones first to be taken.
    """

    def __init__(self, example: PersistentVolume, size_nano: int) -> None:
        self.example, self.size_nano = example, size_nano
        self.volumes: dict[int, PersistentVolume] = {}
        self._by_label: dict[str, _Labelled] = {}
        self._others: dict[int, PersistentVolume] = {}

    def add(self, number: int, volume: PersistentVolume) -> None:
        """Add a volume."""
        self.volumes[number] = volume
        # Local volumes, of which there may be thousands, require one label; the others are few.
        if (label := _only_label(volume)) is None:
            self._others[number] = volume
        else:
            self._by_label.setdefault(label[0], _Labelled()).add(label[1], number, volume)

    def drop(self, number: int) -> None:
        """Remove a volume."""
        if (label := _only_label(self.volumes.pop(number))) is None:
            del self._others[number]
        else:
            self._by_label[label[0]].drop(label[1], number)

    def first(self, labels: Mapping[str, str], taken_names: Container[str]) -> tuple[int, PersistentVolume] | None:
        """Return the first volume, with its number, that is not taken and that a node with those labels can use."""
        nearby_volumes = (
            volumes_by_value.by_value[labels[key]]
            for key, volumes_by_value in self._by_label.items()
            if labels.get(key) in volumes_by_value.by_value
        )
        candidates = [
            item for volumes in nearby_volumes for item in volumes.items() if item[1].metadata.name not in taken_names
        ]
        other_volumes = (item for item in self._others.items() if item[1].metadata.name not in taken_names)
        candidates += (item for item in other_volumes if covers(item[1], labels))
        # By number: the volume that has been free for longest.
        return min(candidates, default=None)

    def coverage(self, snapshot: Snapshot, rows: Rows, hidden: Mapping[str, PersistentVolume]) -> BoolArray:
        """Return which of the rows can use a volume besides the hidden ones.

        Shape: one entry per row of `rows`.
        Cost: one pass over the rows for each label, and for each volume that requires more than one value of a label.
        """
        has_volume = np.zeros(len(rows), np.bool_)
        for key, labelled_volumes in self._by_label.items():
            column = snapshot.label_column(key)
            has_volume |= labelled_volumes.volume_mask(column, hidden).take(column.ids.take(rows))
        for volume in self._others.values():
            if volume.metadata.name not in hidden:
                has_volume |= coverage(volume, snapshot, rows)
        return has_volume


class FreeVolumes:
    """The free volumes of one class."""

    def __init__(self) -> None:
        self._count = 0
        self._numbers: dict[str, int] = {}
        self._kinds: dict[int, _Kind] = {}
        self._alike: dict[_Kind, AlikeVolumes] = {}

    def __iter__(self) -> Iterator[AlikeVolumes]:
        """Yield the volumes that may suit a claim, alike ones together."""
        return iter(self._alike.values())

    def add(self, volume: PersistentVolume) -> None:
        """Add a volume, or a newer state of one, which keeps its number."""
        number = self._numbers.get(volume.metadata.name)
        if number is None:
            number = self._numbers[volume.metadata.name] = self._count
            self._count += 1
        # The newer state may be of another kind.
        self._take_out(number)
        kind = _kind_of(volume)
        if kind is None:
            return
        alike = self._alike.get(kind)
        if alike is None:
            alike = self._alike[kind] = AlikeVolumes(volume, kind[0])
        alike.add(number, volume)
        self._kinds[number] = kind

    def drop(self, volume: PersistentVolume) -> None:
        """Remove a volume."""
        self._take_out(self._numbers.pop(volume.metadata.name))

    def _take_out(self, number: int) -> None:
        kind = self._kinds.pop(number, None)
        if kind is not None:
            self._alike[kind].drop(number)
            if not self._alike[kind].volumes:
                # Kinds come and go with the labels of volumes, and empty ones would pile up.
                del self._alike[kind]


_Kind: TypeAlias = tuple[int, str | None, str | None, frozenset[str], frozenset[tuple[str, str]]]


def _kind_of(volume: PersistentVolume) -> _Kind | None:
    """Return the properties of a free volume that claims compare; None if the volume suits no claim now."""
    size, spec, metadata = capacity_nano(volume), volume.spec, volume.metadata
    if size is None or volume.status.phase != _AVAILABLE or metadata.deletion_timestamp is not None:
        return None
    labels = frozenset(metadata.labels.items())
    return size, spec.volume_mode, spec.volume_attributes_class_name, frozenset(spec.access_modes), labels


class VolumeIndex(Index[PersistentVolume]):
    """Volumes by `place_of_volume`; those that no claim has are grouped further."""

    def __init__(self) -> None:
        super().__init__(place_of_volume)
        self._free: dict[str, FreeVolumes] = {}

    def free(self, storage_class: str) -> Iterable[AlikeVolumes]:
        """Return the volumes of the class that are kept for no claim, a live view."""
        return self._free.get(storage_class, ())

    def put(self, item: PersistentVolume) -> None:
        """Add a volume; see `Index.put`."""
        super().put(item)
        if item.spec.claim_ref is None:
            self._free.setdefault(class_of_volume(item), FreeVolumes()).add(item)

    def drop(self, item: PersistentVolume) -> None:
        """Remove a volume; see `Index.drop`."""
        super().drop(item)
        if item.spec.claim_ref is None:
            self._free[class_of_volume(item)].drop(item)
