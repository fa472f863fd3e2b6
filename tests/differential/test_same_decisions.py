"""kube-scheduler and podium decide on the same random pods, one at a time, from the same state of a real cluster."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.control_plane.client import Client
from tests.control_plane.servers import ControlPlane
from tests.differential.random_cluster import PATIENT, RandomCluster, surroundings
from tests.differential.score_log import ScoreLog, Scores
from tests.differential.two_schedulers import Verdict, ask, take_away
from tests.e2e.daemon import Daemon, configuration
from tests.e2e.priorities import create_priority_class

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]

NODES, PODS = 60, 200
# Another seed is another cluster, for whoever wants to look further.
SEED = int(os.environ.get("PODIUM_DIFFERENTIAL_SEED", "36"))
UPSTREAM, PODIUM = "upstream", "podium"
SCORING = {
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
    "TaintToleration",
}


@pytest.fixture
def cluster() -> RandomCluster:
    return RandomCluster(SEED)


@pytest.fixture
async def filled_control_plane(
    empty_control_plane: ControlPlane, admin: Client, cluster: RandomCluster
) -> ControlPlane:
    """With everything but the pods, so that both schedulers know it from their start."""
    for path, item in surroundings():
        await admin.create(path, item)
    await create_priority_class(admin, PATIENT, 1000, preemptionPolicy="Never")
    for node in cluster.nodes(NODES):
        await admin.create("/api/v1/nodes", node)
    return empty_control_plane


@pytest.fixture
async def log_of_upstream(filled_control_plane: ControlPlane) -> AsyncIterator[ScoreLog]:
    """kube-scheduler runs, for pods that name `upstream`."""
    config = configuration(profiles=[{"schedulerName": UPSTREAM}])
    scheduler = await anyio.to_thread.run_sync(lambda: filled_control_plane.start_scheduler(config, verbosity=10))
    log = ScoreLog(scheduler.process.log)
    yield log
    log.close()
    await anyio.to_thread.run_sync(scheduler.process.stop)


@pytest.fixture
async def podium(filled_control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Daemon]:
    """podium runs, for pods that name `podium`."""
    daemon = Daemon(tmp_path / "podium", filled_control_plane.kubeconfig(), configuration(), warm=True)
    try:
        await daemon.wait_ready()
        yield daemon
        assert await daemon.stop() == 0, daemon.output()
        assert "Traceback" not in daemon.output()
    finally:
        daemon.kill()


@dataclass
class Comparison:
    """Counts of questions and of their differences."""

    differences: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    messages: set[str] = field(default_factory=set)
    telling_plugins: set[str] = field(default_factory=set)

    def add(self, pod: Json, upstream: Verdict, podium: Verdict, scores: Scores) -> None:
        # A single feasible node is not scored.
        best = scores.top or {upstream.node}
        assert upstream.node in best, "the log is not about this pod"
        if not upstream.node:
            self.counts["unschedulable"] += 1
            self.messages.add(upstream.message)
        elif len(best) < len(scores.total):
            self.counts["told apart"] += 1
        self.telling_plugins |= {name for name, by_node in scores.by_plugin.items() if len(set(by_node.values())) > 1}
        if podium.node not in best or podium.message != upstream.message:
            self.differences.append(_description(pod, upstream, podium, scores))


def _description(pod: Json, upstream: Verdict, podium: Verdict, scores: Scores) -> str:
    name = pod["metadata"]["name"]
    lines = [f"{name}: {json.dumps(pod)}"]
    for scheduler, verdict in (("kube-scheduler", upstream), ("podium", podium)):
        total = scores.total.get(verdict.node)
        detail = f" ({total}: {scores.of(verdict.node)})" if total is not None else ""
        lines.append(f"  {scheduler}: {verdict.node or verdict.message}{detail}")
    return "\n".join(lines)


async def test_podium_decides_as_kube_scheduler_does(
    admin: Client, cluster: RandomCluster, log_of_upstream: ScoreLog, podium: Daemon
) -> None:
    comparison = Comparison()
    for pod in cluster.pods(PODS):
        by_upstream = await ask(admin, UPSTREAM, pod)
        scores = log_of_upstream.scores(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        await take_away(admin, pod)
        by_podium = await ask(admin, PODIUM, pod)
        comparison.add(pod, by_upstream, by_podium, scores)
        if not by_podium.node:
            await take_away(admin, pod)
    assert not comparison.differences, f"seed {SEED}:\n" + "\n".join(comparison.differences)
    # Agreement counts for something only where there was something to disagree about.
    assert comparison.telling_plugins == SCORING
    assert comparison.counts["told apart"] > PODS / 2
    assert len(comparison.messages) >= 8
