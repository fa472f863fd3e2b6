"""The measured loads of nodes, as plugins read them: the latest report of a source, and its age.

A report is an input from outside, like a watched object: it is recorded and replayed, and a question from files can
hold one.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.lib.clock import Clock
from podium.objects.node_metrics import ANY_SOURCE, MetricsSource, NodeMetricsReport


class NodeMetrics:
    """The reports of one source.

    Args:
        report_of: returns the latest report of a source by its name; None if it has never been read.
    """

    def __init__(
        self, source: MetricsSource, report_of: Callable[[str], NodeMetricsReport | None], clock: Clock
    ) -> None:
        self.source = source
        self._report_of = report_of
        self._clock = clock

    @property
    def report(self) -> NodeMetricsReport | None:
        """The latest report, however old; None if the source has never been read."""
        return self._report_of(self.source.name) or self._report_of(ANY_SOURCE)

    @property
    def age_s(self) -> float | None:
        """The seconds since the source was read; None if it has never been, or it is not known when."""
        report = self.report
        return None if report is None else report.age_s(self._clock.now())

    def is_stale(self, after_s: float) -> bool:
        """Return whether there is no report, or only one that is older than this."""
        report = self.report
        if report is None:
            return True
        return report.fetched_s is not None and self._clock.now() - report.fetched_s > after_s
