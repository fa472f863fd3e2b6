"""What a profile tells of its plugins while they run."""

from __future__ import annotations

from typing import Protocol

from podium.objects.core import Pod


class Observer(Protocol):
    """Is told what ran and how long it took; `seconds` are of the injected clock."""

    def observe_extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """One extension point has run."""

    def count_evaluations(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """A plugin has been called, for that many nodes where it is called for nodes."""

    def plugin_failed(self, plugin: str, point: str, pod: Pod, error: BaseException) -> None:
        """A plugin has raised something, or answered what is no answer. The attempt goes on, or fails, by itself."""

    def plugin_was_slow(self, plugin: str, point: str, pod: Pod, seconds: float) -> None:
        """A plugin has kept all pods waiting for more than `SLOW_PLUGIN_S`."""
