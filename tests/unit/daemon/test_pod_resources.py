"""/metrics/resources, as kube-scheduler has it; `tests/e2e/test_pod_resources.py` compares the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from podium.client.informer import Informer
from podium.daemon.pod_resources import pod_resources_page, unit_of
from podium.engine.manifests import read_manifest
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import PODS
from podium.server.serving.health import Health
from podium.server.serving.server import application
from podium.telemetry import Metrics

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def container(requests: Json, limits: Json | None = None, **fields: Any) -> Json:
    return {"name": "c", "resources": {"requests": requests, "limits": limits or {}}, **fields}


def manifest(name: str, *containers: Json, status: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"schedulerName": "podium", "containers": list(containers), **spec},
        "status": status or {},
    }


async def page(*manifests: Json, leader: Callable[[], str | None] = lambda: None) -> list[str]:
    informer: Informer[Pod] = Informer(PODS, lambda *_: None)
    for document in manifests:
        informer.put(read_manifest(document, PODS))
    pages = {"/metrics/resources": pod_resources_page(informer.list, leader, ManualClock())}
    async with TestClient(TestServer(application(Health(), Metrics(), dict, pages=pages))) as client:
        answer = await client.get("/metrics/resources")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return (await answer.text()).splitlines()


async def test_requests_and_limits_have_upstreams_names_labels_and_units() -> None:
    web = manifest(
        "web",
        container({"cpu": "100m", "memory": "64Mi", "a.com/b": "2"}, {"memory": "1Gi"}),
        priority=7,
        nodeName="n1",
    )
    about = 'namespace="shop",pod="web",node="n1",scheduler="podium",priority="7"'
    lines = await page(web)
    assert [line for line in lines if not line.startswith("# HELP")] == [
        "# TYPE kube_pod_resource_request gauge",
        f'kube_pod_resource_request{{{about},resource="cpu",unit="cores"}} 0.1',
        f'kube_pod_resource_request{{{about},resource="memory",unit="bytes"}} 67108864',
        f'kube_pod_resource_request{{{about},resource="a.com/b",unit=""}} 2',
        "# TYPE kube_pod_resource_limit gauge",
        f'kube_pod_resource_limit{{{about},resource="memory",unit="bytes"}} 1073741824',
    ]


def samples(lines: list[str], family: str) -> dict[str, str]:
    """The amount of each resource of the only pod."""
    return {
        line.partition('resource="')[2].partition('"')[0]: line.rpartition(" ")[2]
        for line in lines
        if line.startswith(family)
    }


async def test_sidecars_init_containers_and_pod_level_values_count_and_zeros_are_left_out() -> None:
    sidecar = container({"cpu": "1"}, {"cpu": "2"}, restartPolicy="Always")
    first = container({"cpu": "3", "memory": "1Gi"}, {"cpu": "5"})
    web = manifest(
        "web",
        container({"cpu": "1m", "ephemeral-storage": "0"}, {"cpu": "1"}),
        initContainers=[sidecar, first],
        resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "3Gi"}},
    )
    lines = await page(web)
    assert samples(lines, "kube_pod_resource_request") == {"cpu": "4", "memory": "2147483648"}
    assert samples(lines, "kube_pod_resource_limit") == {"cpu": "7", "memory": "3221225472"}


async def test_overhead_is_added_to_requests_and_to_limits_that_there_are() -> None:
    overhead = {"cpu": "250m", "memory": "1Mi"}
    lines = await page(manifest("web", container({"cpu": "1"}, {"cpu": "2", "memory": "0"}), overhead=overhead))
    assert samples(lines, "kube_pod_resource_request") == {"cpu": "1.25", "memory": "1048576"}
    assert samples(lines, "kube_pod_resource_limit") == {"cpu": "2.25"}


async def test_a_pending_pod_has_no_node_and_perhaps_no_priority() -> None:
    [line] = [line for line in await page(manifest("web", container({"cpu": "1"}))) if not line.startswith("#")]
    assert 'node="",scheduler="podium",priority=""' in line


async def test_pods_that_have_ended_on_a_node_and_those_that_cannot_be_read_are_left_out() -> None:
    whole_container = container({"cpu": "1"})
    finished_pods = [
        manifest(f"ended-{phase}", whole_container, nodeName="n1", status={"phase": phase})
        for phase in ("Succeeded", "Failed")
    ]
    unreadable_pod = manifest("broken", container({"cpu": "much"}))
    lines = await page(
        *finished_pods,
        unreadable_pod,
        manifest("never-ran", whole_container, status={"phase": "Failed"}),
        manifest("web", whole_container),
    )
    assert [line.partition('pod="')[2].partition('"')[0] for line in lines if not line.startswith("#")] == [
        "never-ran",
        "web",
    ]


async def test_a_replica_that_stands_by_has_an_empty_page() -> None:
    assert await page(manifest("web", container({"cpu": "1"})), leader=lambda: "other") == []


async def test_labels_are_escaped() -> None:
    odd = manifest("web", container({'odd"\\': "1"}))
    [line] = [line for line in await page(odd) if not line.startswith("#")]
    assert 'resource="odd\\"\\\\",unit=""' in line


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("cpu", "cores"),
        ("memory", "bytes"),
        ("storage", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("hugepages-2Mi", "bytes"),
        ("attachable-volumes-aws-ebs", "integer"),
        ("example.com/gpu", ""),
        ("pods", ""),
    ],
)
def test_units_are_those_of_upstream(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit
