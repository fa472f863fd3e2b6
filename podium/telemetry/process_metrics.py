"""The metrics of every process but the scheduler, beside its own; the scheduler has all of its own in `metrics`."""

from __future__ import annotations

from typing import Any

from podium.telemetry.families import Family, ReadFamily, counter, gauge
from podium.telemetry.subsystems.process import log_lines_lost


class ProcessMetrics:
    """The metric families of one process.

    Args:
        families: the families of this kind of process.
        elects: whether the process takes part in a leader election.
    """

    def __init__(self, *families: Family[Any] | ReadFamily, elects: bool = False) -> None:
        self._leader = gauge("leader_election_master_status", "1 while this process leads, otherwise 0.", "name")
        self._slowpath = counter(
            "leader_election_slowpath_total", "Renewals that had to read the lease before they wrote it.", "name"
        )
        self._failures = counter("podium_unexpected_errors_total", "Unexpected errors.", "where", "name")
        election = (self._leader, self._slowpath) if elects else ()
        self.families = (*families, *election, self._failures, log_lines_lost())

    def set_leader(self, name: str, *, leads: bool) -> None:
        """Record whether this process holds the lease of that name."""
        self._leader[(name,)].set(int(leads))

    def count_election_slowpath(self, name: str) -> None:
        """Count a renewal for which the leader had to read the lease of that name first."""
        self._slowpath[(name,)].add()

    def count_unexpected_error(self, where: str, name: str) -> None:
        """Count an unexpected exception."""
        self._failures[where, name].add()

    def render(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        lines = [line for family in self.families for line in family.lines()]
        return "\n".join(lines).encode() + b"\n"
