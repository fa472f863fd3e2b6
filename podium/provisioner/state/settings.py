"""The Karpenter settings that planning reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from podium.objects.core import TopologySpreadConstraint
from podium.objects.errors import FieldError
from podium.provisioner.apis.labels import NODE_CLASS

UnknownLabels: TypeAlias = Literal["met", "refused", "ignored"]

FEATURE_GATES: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "NodeRepair": False,
        "ReservedCapacity": True,
        "SpotToSpotConsolidation": False,
        "NodeOverlay": False,
        "StaticCapacity": False,
        "CapacityBuffer": False,
        "TerminateFirstDrift": False,
        "TerminateFirstRepair": False,
        "PodDeletionCostManagement": False,
    }
)
"""The feature gates of Karpenter v1.15.0 with their defaults."""

GATES_THAT_COUNT: Final = frozenset(
    {"ReservedCapacity", "SpotToSpotConsolidation", "TerminateFirstDrift", "PodDeletionCostManagement", "NodeOverlay"}
)
"""The feature gates by which planning goes; what the others switch on is not planned."""

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_feature_gates(text: str) -> Mapping[str, bool]:
    """Read feature gates as Karpenter's `--feature-gates` has them: `NodeRepair=true,SpotToSpotConsolidation=true`.

    Raises:
        FieldError: a gate is unknown, or its value is neither true nor false.
    """
    gates: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (side.strip() for side in part.partition("="))
        if name not in FEATURE_GATES:
            raise FieldError(name or part, f"is not one of {', '.join(FEATURE_GATES)}")
        if value not in _BOOLEANS:
            raise FieldError(name, f'"{value}" is neither true nor false')
        gates[name] = _BOOLEANS[value]
    return gates


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings and feature gates that count.

    Attributes:
        ignore_preferences: Whether pods' preferences have no effect.
        lower_min_values: Whether a NodeClaim may have fewer different values than its NodePool wants.
        uses_reservations: Whether reserved capacity counts.
        replaces_spot_with_spot: Whether a spot node may be replaced with a cheaper spot node.
        terminates_first: Whether a drifted node of a full reservation may go before there is another in its place.
        reads_deletion_cost: Whether a pod's `pod-deletion-cost` counts where it has no `disruption-cost`.
        default_constraints: Spread constraints for pods that have none.
        node_class: Group and kind of the provider's node class; None for any provider's.
        unknown_labels: The effect of a requirement on a label that no instance type has: it is met, as upstream takes
            it, it is refused, or it is left out.
        uses_overlays: Whether NodeOverlays count.
    """

    ignore_preferences: bool = False
    lower_min_values: bool = False
    uses_reservations: bool = True
    replaces_spot_with_spot: bool = False
    terminates_first: bool = False
    reads_deletion_cost: bool = True
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    node_class: tuple[str, str] | None = NODE_CLASS
    unknown_labels: UnknownLabels = "met"
    uses_overlays: bool = False
