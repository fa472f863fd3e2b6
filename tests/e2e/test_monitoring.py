"""The dashboard and the alert rules, on what podium and kube-scheduler really serve at /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread
import pytest

from tests.control_plane.client import Client
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.priorities import create_priority_class
from tests.e2e.waiting import eventually
from tests.go_tools.binaries import PROMTOOL
from tests.manifests import HOSTNAME, node, nodes, pod
from tests.monitoring.files import metrics_of_danger_signs, metrics_of_rules, queries_of_dashboard, recorded_by_rules
from tests.monitoring.promtool import Scrapes, missing_series, without_data

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

SCHEDULERS = {"podium": "podium", "kube-scheduler": "default-scheduler"}
"""The job of each, and its pods' schedulerName."""
# One cycle in ten is sampled for the times of single plugins.
PODS = 150


async def test_every_panel_and_every_rule_finds_data_of_both_schedulers(
    real_cluster: RealCluster, tools: Mapping[str, Path], start: StartDaemon, tmp_path: Path
) -> None:
    cluster, plane = real_cluster, real_cluster.plane
    daemon = await start(cluster, configuration(leaderElection={"leaderElect": True, "resourceName": "podium"}))
    kube_scheduler = await anyio.to_thread.run_sync(
        plane.start_scheduler,
        {"leaderElection": {"leaderElect": True}, "clientConnection": {"qps": 2000, "burst": 2000}},
    )
    try:
        insecure = plane.ssl_context()
        insecure.check_hostname, insecure.verify_mode = False, False  # type: ignore[assignment]
        async with Client(kube_scheduler.url, token=plane.admin_token, tls=insecure) as theirs:

            async def scrape() -> dict[str, str]:
                return {"podium": (await daemon.get("/metrics"))[1], "kube-scheduler": await theirs.text("/metrics")}

            first = await scrape()
            await create_priority_class(cluster.admin, "urgent", 1000)
            await cluster.create(*nodes(4, cpu="64"))
            for name in SCHEDULERS.values():
                await attempt_everything(cluster, name)

            async def all_have_data() -> bool:
                scrapes = Scrapes(first, await scrape())
                # The alerts ask for states that are rare: it must be possible to see them.
                assert missing_series(scrapes, metrics_of_rules() - metrics_of_danger_signs()) == []
                queries = [*queries_of_dashboard(), *recorded_by_rules()]
                queries_without_data = await anyio.to_thread.run_sync(
                    without_data, tools[PROMTOOL], tmp_path, scrapes, queries
                )
                assert queries_without_data == []
                return True

            await eventually(all_have_data)
    finally:
        await anyio.to_thread.run_sync(kube_scheduler.process.stop)


async def attempt_everything(cluster: RealCluster, scheduler: str) -> None:
    """Have pods bound, one rejected, and one preempted by another."""
    own = f"{scheduler}-node"
    await cluster.create(node(own, cpu="1"))
    spec = {"nodeSelector": {HOSTNAME: own}, "terminationGracePeriodSeconds": 0}
    names = [f"{scheduler}-{index}" for index in range(PODS)]
    await cluster.create(*[pod(name, cpu="10m", scheduler=scheduler) for name in names])
    await cluster.create(pod(f"{scheduler}-victim", cpu="800m", scheduler=scheduler, **spec))
    await cluster.wait_bound([*names, f"{scheduler}-victim"])
    urgent = pod(f"{scheduler}-urgent", cpu="800m", scheduler=scheduler, priorityClassName="urgent", **spec)
    await cluster.create(urgent, pod(f"{scheduler}-huge", cpu="640", scheduler=scheduler))
    await cluster.wait_bound([f"{scheduler}-urgent"])
    await cluster.wait_condition(f"{scheduler}-huge")
