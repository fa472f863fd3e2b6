"""The Karpenter settings that planning reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from podium.objects.core import TopologySpreadConstraint
from podium.provisioner.apis.labels import NODE_CLASS

UnknownLabels: TypeAlias = Literal["met", "refused", "ignored"]


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
