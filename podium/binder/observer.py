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

    def observe_victims(self, victims: int) -> None:
        """Record the number of victims of a preemption that starts."""

    def count_preemption_loop(self) -> None:
        """Count a preemption whose victims have come back too many times."""
