"""The binder's reports for metrics and logs. Methods do nothing by default: an observer overrides those that it needs.

Methods must be quick and must not raise. `status` is a `Code.label`; seconds are those of the injected clock.
"""

from __future__ import annotations

from podium.framework.profile.observer import Observer


class BindingObserver(Observer):
    """Receives the reports of binding cycles, in addition to those of the framework."""

    def observe_permit_wait(self, status: str, seconds: float) -> None:
        """A pod's wait at Permit has ended."""


class PreemptionObserver:
    """Receives the reports of preemptions."""

    def count_preemption_attempt(self) -> None:
        """A pod has looked for victims."""

    def observe_victims(self, victims: int) -> None:
        """A preemption with this many victims has started."""

    def count_preemption_loop(self) -> None:
        """Victims have come back too many times."""
