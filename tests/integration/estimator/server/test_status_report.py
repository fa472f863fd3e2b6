"""Summaries that are cluster into Cluster objects of an API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from podium.estimator.server.app import EstimatorApp, Report, Source
from podium.estimator.server.status_report import StatusReport
from podium.lib.system_clock import SystemClock
from podium.sandbox import Sandbox
from podium.server.process import connect
from tests.builders import node as build_node
from tests.integration.estimator.server.conftest import QUIET, replace, serving
from tests.manifests import node, pod
from tests.patience import PATIENCE_S
from tests.unit.estimator.members import member as member_of_objects

pytestmark = pytest.mark.anyio

MODELS = [
    {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "3"}]},
    {"grade": 1, "ranges": [{"name": "cpu", "min": "3", "max": "9223372036854775807"}]},
]


@pytest.fixture
async def karmada(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        yield sandbox


@pytest.fixture
async def member(anyio_backend: object) -> AsyncIterator[Sandbox]:
    async with Sandbox(kubelets=False) as sandbox:
        yield sandbox


def _cluster(name: str, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push", "resourceModels": MODELS},
        "status": status,
    }


async def _until(sandbox: Sandbox, name: str, summaries: dict[str, Any]) -> dict[str, Any]:
    """Wait until the status has these summaries, and return it."""
    status: dict[str, Any] = {}
    with anyio.move_on_after(PATIENCE_S):
        while True:
            status = sandbox.store.get("clusters.cluster.karmada.io", name)["status"]
            if {key: status.get(key) for key in summaries} == summaries:
                return status
            await anyio.sleep(0.02)
    raise AssertionError(f"expected {summaries}, got {status}")


async def test_summaries_follow_nodes_and_pods(karmada: Sandbox, member: Sandbox, tmp_path: Any) -> None:
    karmada.store.create(_cluster("m1", kubernetesVersion="v1.37.0", resourceSummary={"allocatable": {"old": "1"}}))
    member.store.create(node("n1", "4"))
    member.store.create(pod("web", "3", node="n1"))
    member.store.create(pod("waiting", "2"))
    # The first member has no Cluster object, and does not keep the other from being cluster.
    sources = [Source(name, str(member.write_kubeconfig(tmp_path / name))) for name in ("m0", "m1")]
    report = Report(Source("karmada", str(karmada.write_kubeconfig(tmp_path / "karmada"))), interval_s=0.05)
    async with serving(EstimatorApp(replace(QUIET, report=report), sources)):
        nodes = {"totalNum": 1, "readyNum": 1}
        status = await _until(karmada, "m1", {"nodeSummary": nodes, "kubernetesVersion": "v1.37.0"})
        resources = status["resourceSummary"]
        assert (resources["allocated"]["cpu"], resources["allocated"]["pods"]) == ("3", "1")
        assert (resources["allocating"]["cpu"], resources["allocating"]["pods"]) == ("2", "1")
        assert "old" not in resources["allocatable"]
        assert resources["allocatableModelings"] == [{"grade": 0, "count": 1}, {"grade": 1, "count": 0}]
        member.store.delete("pods", "web", "default", grace_period_s=0)
        member.store.create(node("n2", "8"))
        status = await _until(karmada, "m1", {"nodeSummary": {"totalNum": 2, "readyNum": 2}})
        assert "allocated" not in status["resourceSummary"]


async def test_status_that_is_right_is_not_cluster_again(karmada: Sandbox, tmp_path: Any) -> None:
    karmada.store.create(_cluster("m1"))
    connection = await connect(SystemClock(), str(karmada.write_kubeconfig(tmp_path / "k")))
    session = connection.session()
    members = {"m1": member_of_objects(build_node("n1", cpu="4")), "m2": member_of_objects()}
    report = StatusReport(session, lambda: members, with_models=False, interval_s=1)
    async with session:
        await report.write_all()
        cluster = karmada.store.get("clusters.cluster.karmada.io", "m1")
        assert cluster["status"]["nodeSummary"] == {"totalNum": 1}
        assert "allocatableModelings" not in cluster["status"]["resourceSummary"]
        await report.write_all()
        assert karmada.store.get("clusters.cluster.karmada.io", "m1") == cluster
