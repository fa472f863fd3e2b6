"""The provisioner's metrics.

Source: karpenter pkg/metrics/metrics.go, v1.15.0, for the kinds of things that are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.provisioner.planners.planner import Purchases, Removal
from podium.provisioner.provisioning.planned_nodes import PlannedNode
from podium.telemetry.families import counter, exponential, gauge, histogram
from podium.telemetry.subsystems.process import log_lines_lost

_PREFIX = "podium_provisioner"


class ProvisionerMetrics:
    """The metric families of one provisioner."""

    def __init__(self) -> None:
        self._steps_s = histogram(
            f"{_PREFIX}_loop_duration_seconds", "Time of one step of a loop.", exponential(0.001, 4, 10), "loop"
        )
        self._errors = counter(f"{_PREFIX}_loop_errors_total", "Steps of a loop that failed and are repeated.", "loop")
        self._bought = counter(f"{_PREFIX}_nodes_created_total", "Nodes that were bought.", "nodepool")
        self._removed = counter(f"{_PREFIX}_nodes_removed_total", "Nodes whose removal has begun.", "reason")
        self._staying = gauge(f"{_PREFIX}_unschedulable_pods", "Pods that no node which can be bought would help.")
        self._leader = gauge("leader_election_master_status", "1 while this process leads, otherwise 0.", "name")
        self._slowpath = counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease before they wrote it.", "name"
        )
        self._failures = counter("podium_unexpected_errors_total", "Unexpected errors.", "where", "name")
        self.families = (
            self._steps_s,
            self._errors,
            self._bought,
            self._removed,
            self._staying,
            self._leader,
            self._slowpath,
            self._failures,
            log_lines_lost(),
        )

    def stepped(self, loop: str, seconds: float, *, is_error: bool) -> None:
        """A step of a loop has ended."""
        self._steps_s[(loop,)].observe(seconds)
        if is_error:
            self._errors[(loop,)].add()

    def purchased(self, purchases: Purchases, bought: Iterable[PlannedNode]) -> None:
        """Nodes were planned, and some of them bought."""
        self._staying[()].set(len(purchases.staying))
        for each in bought:
            self._bought[(each.pool,)].add()

    def removed(self, removal: Removal) -> None:
        """The removal of nodes has begun."""
        self._removed[(removal.reason,)].add(len(removal.nodes))

    def set_leader(self, name: str, *, leads: bool) -> None:
        """Record whether this process holds the lease of that name."""
        self._leader[(name,)].set(int(leads))

    def count_election_slowpath(self, name: str) -> None:
        """A leader had to read the lease of that name before it could renew it."""
        self._slowpath[(name,)].add()

    def count_unexpected_error(self, where: str, name: str) -> None:
        """An unexpected exception was caught."""
        self._failures[where, name].add()

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        lines = [line for family in self.families for line in family.lines()]
        return "\n".join(lines).encode() + b"\n"
