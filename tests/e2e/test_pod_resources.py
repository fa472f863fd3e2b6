"""/metrics/resources of podium and of the real kube-scheduler, in one cluster."""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.control_plane.client import Client
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.daemon import configuration
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]
NOBODY = "nobody"


def container(name: str, requests: Json, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": name, "image": "x", "resources": {"requests": requests, "limits": limits or {}}, **fields}


def of(name: str, *containers: Json, **spec: Any) -> Json:
    item = pod(name, scheduler=NOBODY, **spec)
    item["spec"]["containers"] = list(containers)
    return item


PODS = (
    of("plain", container("c", {"cpu": "100m", "memory": "64Mi"})),
    of("fractions", container("c", {"cpu": "333m", "memory": "1.5Gi", "ephemeral-storage": "0"}, {"cpu": "1e1"})),
    of("bound", container("c", {"cpu": "1"}, {"cpu": "1", "example.com/gpu": "2"}), node="n1"),
    of("none", container("c", {})),
    of(
        "stages",
        container("c", {"cpu": "1m"}, {"cpu": "1", "memory": "10M"}),
        initContainers=[
            container("s", {"cpu": "1"}, {"cpu": "2"}, restartPolicy="Always"),
            container("i", {"cpu": "3", "memory": "1Gi"}, {"cpu": "5", "memory": "2Gi"}),
        ],
    ),
    of(
        "whole",
        container("c", {"cpu": "1", "ephemeral-storage": "1Ki"}),
        resources={"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "3Gi"}},
    ),
    of("huge", container("c", {"hugepages-2Mi": "4Mi", "cpu": "1"}, {"hugepages-2Mi": "4Mi"})),
)


def samples_of(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Each amount by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_podium_serves_what_kube_scheduler_serves(real_cluster: RealCluster, start: StartDaemon) -> None:
    plane = real_cluster.plane
    await real_cluster.create(node("n1"), *PODS)
    daemon = await start(real_cluster, configuration())
    kube_scheduler = await anyio.to_thread.run_sync(plane.start_scheduler)
    try:
        insecure = plane.ssl_context()
        insecure.check_hostname, insecure.verify_mode = False, False  # type: ignore[assignment]
        async with Client(kube_scheduler.url, token=plane.admin_token, tls=insecure) as theirs:

            async def are_equal() -> bool:
                status, text = await daemon.get("/metrics/resources")
                assert status == 200
                own, upstreams = samples_of(text), samples_of(await theirs.text("/metrics/resources"))
                assert own == upstreams
                pods = {dict(labels)["pod"] for _, labels in own}
                return pods == {item["metadata"]["name"] for item in PODS} - {"none"}

            await eventually(are_equal)
    finally:
        await anyio.to_thread.run_sync(kube_scheduler.process.stop)
