"""Recorded questions to a provisioner, each one JSON object: a cluster, settings, and a catalogue that others share.

Owns the form of the questions. A line without `id` defines a catalogue for those that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from podium.objects.core import TopologySpreadConstraint
from podium.objects.errors import FieldError
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.cloudprovider.catalogue import Catalogue, read_catalogue
from podium.provisioner.provisioning.provisioner import plan_provisioning
from podium.provisioner.reports.disruption_report import plan_disruption
from podium.provisioner.state.reading import read_objects, time_of
from podium.provisioner.state.settings import FEATURE_GATES, Settings

SOLVE: Final = "solve"
CONSOLIDATE: Final = "consolidate"

_KINDS: Final[Mapping[str, Callable[[ClusterObjects, Catalogue, Settings, float], dict[str, Any]]]] = {
    SOLVE: plan_provisioning,
    CONSOLIDATE: plan_disruption,
}
_POLICIES: Final[Mapping[str, tuple[str, str]]] = {
    "preferencePolicy": ("Respect", "Ignore"),
    "minValuesPolicy": ("Strict", "BestEffort"),
}
_CATALOGUE_FIELDS: Final = frozenset({"catalogue", "instanceTypes"})
_SETTINGS_FIELDS: Final = frozenset({*_POLICIES, "featureGates", "schedulerConfig"})
_RECORDED_FIELDS: Final = frozenset({"expect", "also", "texts", "arbitrary"})
"""What recordings say of the answer, beside the question."""
_QUESTION_FIELDS: Final = _CATALOGUE_FIELDS | _RECORDED_FIELDS | {"id", "kind", "now", "objects", "settings"}


class Cases:
    """Answers questions in the order in which they stand in a file."""

    def __init__(self) -> None:
        self._catalogues: dict[str, Catalogue] = {}

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a question, with its id, or None if the row defines a catalogue.

        Raises:
            FieldError: a field is missing or has no usable value.
        """
        _refuse_unknown(row, _QUESTION_FIELDS if "id" in row else _CATALOGUE_FIELDS, "")
        if "id" not in row:
            # Hundreds of questions share a catalogue of megabytes, so a file states it once.
            self._catalogues[str(row.get("catalogue"))] = read_catalogue(row.get("instanceTypes"))
            return None
        kind = str(row.get("kind"))
        if kind not in _KINDS:
            raise FieldError("kind", f'"{kind}" is not one of {", ".join(_KINDS)}')
        settings = read_settings(row.get("settings") or {})
        objects, now_s = read_objects(row.get("objects", ())), time_of(row.get("now"), "now")
        return {"id": row["id"], **_KINDS[kind](objects, self.catalogue_of(row), settings, now_s)}

    def catalogue_of(self, row: Mapping[str, Any]) -> Catalogue:
        """Return the catalogue that a question is about.

        Raises:
            FieldError: it is not defined.
        """
        if "instanceTypes" in row:
            return read_catalogue(row["instanceTypes"])
        name = str(row.get("catalogue"))
        if name not in self._catalogues:
            raise FieldError("catalogue", f'"{name}" is not defined on a line before this one')
        return self._catalogues[name]


def read_settings(document: object) -> Settings:
    """Read Karpenter's settings: `preferencePolicy`, `minValuesPolicy`, `featureGates` and `schedulerConfig`.

    Raises:
        FieldError: a setting has no usable value.
    """
    document = _mapping(document, "settings")
    _refuse_unknown(document, _SETTINGS_FIELDS, "settings.")
    flags = {name: _is_second(document, name, values) for name, values in _POLICIES.items()}
    gates = _mapping(document.get("featureGates") or {}, "settings.featureGates")
    _refuse_unknown(gates, frozenset(FEATURE_GATES), "settings.featureGates.")
    for name, gate in gates.items():
        if not isinstance(gate, bool):
            raise FieldError(f"settings.featureGates[{name}]", f"{gate!r} is neither true nor false")
    config = _mapping(document.get("schedulerConfig") or {}, "settings.schedulerConfig")
    _refuse_unknown(config, frozenset({"podTopologySpread"}), "settings.schedulerConfig.")
    spread = _mapping(config.get("podTopologySpread") or {}, "settings.schedulerConfig.podTopologySpread")
    _refuse_unknown(spread, frozenset({"defaultConstraints"}), "settings.schedulerConfig.podTopologySpread.")
    try:
        constraints = msgspec.convert(spread.get("defaultConstraints") or [], tuple[TopologySpreadConstraint, ...])
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise FieldError("settings.schedulerConfig.podTopologySpread.defaultConstraints", str(error)) from error
    return Settings(
        ignore_preferences=flags["preferencePolicy"],
        lower_min_values=flags["minValuesPolicy"],
        uses_overlays=gates.get("NodeOverlay", False),
        uses_reservations=gates.get("ReservedCapacity", True),
        replaces_spot_with_spot=gates.get("SpotToSpotConsolidation", False),
        terminates_first=gates.get("TerminateFirstDrift", False),
        reads_deletion_cost=not gates.get("PodDeletionCostManagement", False),
        default_constraints=constraints,
    )


def _refuse_unknown(document: Mapping[str, Any], names: AbstractSet[str], path: str) -> None:
    """Refuse a field that would not count. A question with it is another one than is answered."""
    for name in document:
        if name not in names:
            raise FieldError(f"{path}{name}", f"is not one of {', '.join(sorted(names))}")


def _is_second(document: Mapping[str, Any], name: str, values: tuple[str, str]) -> bool:
    value = document.get(name, values[0])
    if value not in values:
        raise FieldError(f"settings.{name}", f'"{value}" is not one of {", ".join(values)}')
    return bool(value == values[1])


def _mapping(raw: object, path: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise FieldError(path, "is not an object with named fields")
    return raw
