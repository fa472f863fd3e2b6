"""The measured loads of nodes, as plugins read them: the latest report of a source, and its age.

A report is an input from outside, like a watched object: it is recorded and replayed, and a question from files can
hold one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from podium.lib.clock import Clock
from podium.objects.node_metrics import ANY_SOURCE, MetricsSource, NodeMetricsReport


@runtime_checkable
class Noting(Protocol):
    """A plugin that can say what its answers rest on, for people who ask why."""

    def notes(self) -> Sequence[str]:
        """Return sentences without the plugin's name, such as how old its metrics are."""
        ...


class NodeMetrics:
    """The reports of one source.

    Args:
        report_of: returns the latest report of a source by its name; None if it has never been read.
    """

    def __init__(
        self, source: MetricsSource, report_of: Callable[[str], NodeMetricsReport | None], clock: Clock
    ) -> None:
        self.source = source
        self._name = source.name
        self._report_of = report_of
        self._clock = clock

    @property
    def report(self) -> NodeMetricsReport | None:
        """The latest report, however old; None if the source has never been read."""
        return self._report_of(self._name) or self._report_of(ANY_SOURCE)

    @property
    def age_s(self) -> float | None:
        """The seconds since the source was read; None if it has never been, or it is not known when."""
        report = self.report
        return None if report is None else report.age_s(self._clock.now())

    def note(self, stale_after_s: float | None) -> str:
        """Return what plugins that read this source decide by.

        Args:
            stale_after_s: the age from which the plugin ignores metrics; None if it uses them however old they are.
        """
        report, age_s = self.report, self.age_s
        if report is None:
            return f"no metrics from {self.source.name} are known here, so it takes no part"
        age = "" if age_s is None else f", which were read {age_s:.0f} s ago"
        if stale_after_s is not None and self.is_stale(stale_after_s):
            return f"it takes no part: the metrics from {self.source.name} are older than {stale_after_s:.0f} s{age}"
        return f"it decides by the metrics from {self.source.name}{age}"

    def is_stale(self, after_s: float) -> bool:
        """Return whether there is no report, or only one that is older than this."""
        report = self.report
        if report is None:
            return True
        return report.fetched_s is not None and self._clock.now() - report.fetched_s > after_s
