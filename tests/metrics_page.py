"""The page docs/metrics.md: every metric of podium, made from the registries in the code.

`python -m tests.metrics_page` writes it; a test fails where the page says something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from podium.daemon.pod_resources import POD_RESOURCES
from podium.estimator.server.metrics import EstimatorMetrics
from podium.fleets.server.metrics import FleetMetrics
from podium.telemetry import Metrics
from podium.telemetry.families import Family, ReadFamily
from tests.page_command import run_as_command

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"

_HEAD = """\
# Metrics reference

`podium run` serves these at `/metrics`, and what pods request at `/metrics/resources`. `python -m tests.metrics_page`
makes this page from the registry in the code.

Durations are in seconds. A metric with labels appears with its first series. `DELETE /metrics` starts counters and
histograms again, except the counters that podium reads from their owners at each scrape: those of Events, writes,
reflectors and lost log lines. The metrics `process_*` and `python_gc_*` are those of the Prometheus client for Python.
"""


def page() -> str:
    """The whole page."""
    own, upstreams = [], []
    for family in Metrics().families:
        (own if family.name.startswith("podium_") else upstreams).append(family)
    sections = {
        "Under kube-scheduler's names": upstreams,
        "podium's own": own,
        "At `/metrics/resources`, under kube-scheduler's names": POD_RESOURCES,
        "Of `podium estimate serve`, under karmada-scheduler-estimator's names": EstimatorMetrics().families,
        "Of `podium clusters serve`": FleetMetrics().families,
    }
    return _HEAD + "".join(f"\n## {title}\n\n{_table(families)}" for title, families in sections.items())


def _table(families: Iterable[Family[Any] | ReadFamily]) -> str:
    rows = [
        f"| `{family.name}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels) or '–'} "
        f"| {family.help} |"
        for family in families
    ]
    return "\n".join(("| name | type | labels | meaning |", "|---|---|---|---|", *rows)) + "\n"


if __name__ == "__main__":
    run_as_command(lambda: PAGE.write_text(page()), __doc__)
