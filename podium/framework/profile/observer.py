"""The observer to which a profile reports plugin calls, failures and durations."""

from __future__ import annotations

from podium.objects.core import Pod


class Observer:
    """Receives what ran and how long it took. `seconds` are measured on the injected clock.

    Methods do nothing by default; an observer overrides those that it needs. They must be quick and must not raise.
    """

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """Record that one extension point has run."""

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record that one plugin has run; called only for the attempts whose plugins are measured."""

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """Count calls of a plugin; `times` is the number of nodes if it is called per node."""

    def count_placements(self, profile: str, count: int) -> None:
        """Count the placements that were generated for a pod group."""

    def observe_placement(self, profile: str, seconds: float, *, is_feasible: bool) -> None:
        """Record that a pod group was tried in a placement."""

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """Report a plugin that raised an exception or returned an invalid value.

        The observer does not decide whether the attempt fails.
        """

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        """Report a plugin call that took longer than `SLOW_PLUGIN_S` and kept all pods waiting."""
