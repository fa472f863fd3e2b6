"""Checks whether the sources of node metrics answer, each of which some plugins read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.client.listing import all_objects
from podium.client.metrics_answers import MetricsError
from podium.client.metrics_reader import MetricsReader
from podium.client.session import ApiSession
from podium.daemon.doctor.findings import Report
from podium.engine.errors import ManifestError
from podium.engine.manifests import read_manifest
from podium.lib.clock import Clock
from podium.objects.api_errors import ApiError
from podium.objects.core import Node
from podium.objects.node_metrics import MetricsSource
from podium.objects.resource_types import NODES


async def check_metrics(
    report: Report, session: ApiSession, sources: Mapping[MetricsSource, Sequence[str]], clock: Clock
) -> None:
    """Read each source once, and add what came of it to the report."""
    if not sources:
        return
    try:
        nodes = [read_manifest(manifest, NODES) for manifest in await all_objects(session, NODES)]
    except (ApiError, ManifestError):
        return  # Another check says that podium may not list nodes.
    for source, users in sources.items():
        await _check_source(report, session, source, users, nodes, clock)


async def _check_source(
    report: Report,
    session: ApiSession,
    source: MetricsSource,
    users: Sequence[str],
    nodes: Sequence[Node],
    clock: Clock,
) -> None:
    try:
        reading = await MetricsReader(source, session, lambda: nodes, clock.now).read()
    except MetricsError as error:
        advice = f"until it answers, {', '.join(users)} cannot tell nodes apart"
        report.fail("node metrics", f"{source.name} cannot be read: {error}", advice)
        return
    count = len(reading.report.data.by_name)
    if reading.problems or count < len(nodes):
        coverage = f"{source.name} has metrics of {count} of {len(nodes)} nodes"
        message = f"{coverage}: {reading.problems}" if reading.problems else coverage
        report.warn("node metrics", message, "a node without metrics gets the lowest score of most plugins")
    else:
        report.ok("node metrics", f"{source.name} has metrics of all {count} nodes")
