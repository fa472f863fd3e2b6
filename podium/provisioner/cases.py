"""Recorded questions to a provisioner, each one JSON object: a cluster, settings, and a catalogue that others share.

Owns the form of the questions. A line without `id` defines a catalogue for those that follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podium.objects.core import TopologySpreadConstraint
from podium.objects.errors import FieldError
from podium.objects.times import parse_time
from podium.provisioner.catalogue import Catalogue, read_catalogue
from podium.provisioner.objects import read_objects
from podium.provisioner.provisioning import plan_provisioning
from podium.provisioner.solve import Settings

SOLVE: Final = "solve"

_POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "preferencePolicy": ("Respect", "Ignore"),
    "minValuesPolicy": ("Strict", "BestEffort"),
}


class Cases:
    """Answers questions in the order in which they stand in a file."""

    def __init__(self) -> None:
        self._catalogues: dict[str, Catalogue] = {}

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a question, with its id; None if the row defines a catalogue.

        Raises:
            FieldError: a field is missing or has no usable value.
        """
        if "id" not in row:
            self._catalogues[str(row.get("catalogue"))] = read_catalogue(row.get("instanceTypes"))
            return None
        if row.get("kind") != SOLVE:
            raise FieldError("kind", f'"{row.get("kind")}" is not a kind of question that is answered: {SOLVE}')
        settings = read_settings(row.get("settings", {}))
        plan = plan_provisioning(
            read_objects(row.get("objects", ())), self._catalogue_of(row), settings, parse_time(str(row.get("now")))
        )
        return {"id": row["id"], **plan}

    def _catalogue_of(self, row: Mapping[str, Any]) -> Catalogue:
        if "instanceTypes" in row:
            return read_catalogue(row["instanceTypes"])
        name = str(row.get("catalogue"))
        if name not in self._catalogues:
            raise FieldError("catalogue", f'"{name}" is not defined on a line before this one')
        return self._catalogues[name]


def read_settings(document: Mapping[str, Any]) -> Settings:
    """Read Karpenter's settings: `preferencePolicy`, `minValuesPolicy`, `featureGates` and `schedulerConfig`.

    Raises:
        FieldError: a setting has no usable value.
    """
    chosen = {name: _is_second(document, name, values) for name, values in _POLICIES.items()}
    spread = (document.get("schedulerConfig") or {}).get("podTopologySpread") or {}
    try:
        constraints = msgspec.convert(spread.get("defaultConstraints") or [], tuple[TopologySpreadConstraint, ...])
    except msgspec.ValidationError as error:
        raise FieldError("settings.schedulerConfig.podTopologySpread.defaultConstraints", str(error)) from error
    return Settings(
        ignore_preferences=chosen["preferencePolicy"],
        lower_min_values=chosen["minValuesPolicy"],
        uses_reservations=(document.get("featureGates") or {}).get("ReservedCapacity", True),
        default_constraints=constraints,
    )


def _is_second(document: Mapping[str, Any], name: str, values: tuple[str, str]) -> bool:
    found = document.get(name, values[0])
    if found not in values:
        raise FieldError(f"settings.{name}", f'"{found}" is not one of {", ".join(values)}')
    return bool(found == values[1])
