"""The answer of a fleet: which clusters take the whole workload, in order, and why the others do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.fleets.ordering import Order


@dataclass(frozen=True, slots=True)
class FittingCluster:
    """A cluster that takes the whole workload.

    Attributes:
        load: the share of its scarcest resource that is requested with the workload, in percent.
        price: of the placement, by the hour; None if it is not known.
        nodes: the proof: the node of each pod, by the pod's namespace and name.
        stale_s: how long ago its API server failed, if it still does; None if the state is fresh.
    """

    cluster: str
    load: float
    price: float | None
    nodes: Mapping[str, str] = field(repr=False)
    stale_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the cluster as JSON values."""
        fields: dict[str, Any] = {"cluster": self.cluster, "load": _round_load(self.load)}
        if self.price is not None:
            fields["price"] = round(self.price, 6)
        if self.stale_s is not None:
            fields["staleSeconds"] = round(self.stale_s, 1)
        return fields | {"nodes": dict(self.nodes)}


@dataclass(frozen=True, slots=True)
class RejectedCluster:
    """A cluster that does not take the whole workload.

    Attributes:
        reason: in the scheduler's or the API server's words.
        pod: the first pod that fits on no node; "" if none was tried.
        placed_count: how many pods had a node by then.
        stale_s: as in `FittingCluster`.
    """

    cluster: str
    reason: str
    pod: str = ""
    placed_count: int = 0
    stale_s: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the cluster as JSON values."""
        fields: dict[str, Any] = {"cluster": self.cluster, "reason": self.reason}
        if self.pod:
            fields |= {"pod": self.pod, "placed": self.placed_count}
        if self.stale_s is not None:
            fields["staleSeconds"] = round(self.stale_s, 1)
        return fields


@dataclass(frozen=True, slots=True)
class FleetFit:
    """The answer of a fleet. It is true if a cluster takes the workload.

    Attributes:
        workload: kind, namespace and name.
        pods: the number of its pods.
        fits: the clusters that take it, the best one first.
        rejections: the clusters that do not, by name.
        without: the clusters that the answer is without, and why.
        untried: the clusters that were not needed, since enough others take the workload.
    """

    workload: str
    pods: int
    order: Order
    fits: Sequence[FittingCluster] = ()
    rejections: Sequence[RejectedCluster] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    untried: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Return whether a cluster takes the workload."""
        return bool(self.fits)

    @property
    def best(self) -> str | None:
        """The cluster to choose; None if none takes the workload."""
        return self.fits[0].cluster if self.fits else None

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            "workload": self.workload,
            "pods": self.pods,
            "order": self.order.value,
            "best": self.best,
            "fits": [cluster.as_dict() for cluster in self.fits],
            "rejected": [cluster.as_dict() for cluster in self.rejections],
            "without": dict(self.without),
            **({"untried": list(self.untried)} if self.untried else {}),
        }


def _round_load(load: float) -> float | None:
    return round(load, 1) if math.isfinite(load) else None
