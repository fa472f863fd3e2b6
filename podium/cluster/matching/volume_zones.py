"""The labels that a node must have for a volume, by the zone and region labels of the volume.

Source: kubernetes pkg/scheduler/framework/plugins/volumezone/volume_zone.go, v1.36.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.objects.storage import PersistentVolume
from podium.objects.topology_labels import BETA_REGION, BETA_ZONE, REGION, ZONE

MULTI_ZONE_DELIMITER: Final = "__"
TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
"""Of volumes, whose values the node must have."""


@dataclass(frozen=True, slots=True)
class Zones:
    """A label that the node must have with one of these values."""

    label: str
    values: frozenset[str]


def zones_of(volume: PersistentVolume) -> tuple[Zones, ...]:
    """Return the node labels that the volume's labels require. A label that names an empty zone is ignored."""
    demands: list[Zones] = []
    for label in TOPOLOGY_LABELS:
        text = volume.metadata.labels.get(label)
        if text is None:
            continue
        values = frozenset(value.strip() for value in text.split(MULTI_ZONE_DELIMITER))
        if "" not in values:
            demands.append(Zones(label, values))
    return tuple(demands)
