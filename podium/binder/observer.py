"""The binder's reports for metrics and logs. Methods do nothing by default: an observer overrides those that it needs.

Methods must be quick and must not raise. `status` is a `Code.label`; seconds are those of the injected clock.
"""

from __future__ import annotations

from podium.framework.profile.observer import Observer


class BindingObserver(Observer):
    """Receives the reports of binding cycles, in addition to those of the framework."""

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        """Record a pod's wait at Permit that has ended."""


class PreemptionObserver:
    """Receives the reports of preemptions."""

    def count_preemption_attempt(self) -> None:
        """Count a pod that looked for victims."""

    def count_group_preemption_attempt(self, result: str) -> None:
        """Count a pod group for which victims were looked for; `result` is the label of the status code."""

    def observe_victim_search(self, preemptor: str, result: str, seconds: float) -> None:
        """Record a search for victims that has ended; `result` is the label of the status code."""

    def observe_victims(self, preemptor: str, victims: int, disruptions: int, violations: int) -> None:
        """Record the victims of a preemption that starts.

        Args:
            disruptions: the number of pod groups, or pods of groups, that are evicted as one.
            violations: the number of victims that violate a disruption budget.
        """

    def count_preemption_loop(self) -> None:
        """Count a preemption whose victims have come back too many times."""
