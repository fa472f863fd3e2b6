"""Field selectors: the sandbox and the real API server take and refuse the same, and select the same objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.sandbox.field_selectors import selectable_fields
from podium.sandbox.resources import RESOURCES, ResourceType
from tests.control_plane.locate import Binaries
from tests.e2e.cluster import DEFINITIONS, ApiError, Cluster, RealCluster, SandboxCluster
from tests.e2e.conftest import new_cluster
from tests.e2e.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

Json = dict[str, Any]

FLAGS = "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"
DEPLOY = Path(__file__).parents[2] / "deploy"

LABELS = sorted({label for resource in RESOURCES for label in selectable_fields(resource).fields})
NEVER = ("", "name", "metadata", "metadata.uid", "metadata.labels", "spec.priority", 'quo"ted', "spec.nodename")
"""Labels that no resource supports."""

MALFORMED = (
    "metadata.name",
    "metadata.name=a=b",
    "metadata.name=a\\",
    r"metadata.name=a\x",
    r"metadata.name=a\,b",
    "metadata.name in (a)",
    "zz=1,aa",
    "zz=1,aa=1",
    "zz=1,metadata.name=a=b",
    ",,",
    " metadata.name=a",
)


@pytest.fixture
async def complete_cluster(anyio_backend: object, control_plane_binaries: Binaries) -> AsyncIterator[RealCluster]:
    """The real API server with everything that the sandbox serves."""
    async with new_cluster(control_plane_binaries, *FLAGS) as cluster:
        for path in (DEPLOY / "coscheduling" / "definition.yaml", *sorted(DEPLOY.glob("policies/*/definitions.yaml"))):
            for definition in yaml.safe_load_all(path.read_text()):
                await cluster.admin.create(DEFINITIONS, definition)
        # The operators that own these kinds ship their definitions, and Karmada serves its own kind itself.
        await cluster.define("kueue.x-k8s.io", "Workload", version="v1beta1")
        await cluster.define("security-profiles-operator.x-k8s.io", "SeccompProfile", version="v1beta1")
        await cluster.define("cluster.karmada.io", "Cluster", "Cluster", version="v1alpha1")
        yield cluster


def path_of(resource: ResourceType) -> str:
    return f"{'/api' if resource.api_version == 'v1' else '/apis'}/{resource.api_version}/{resource.plural}"


async def answer(cluster: Cluster, path: str, selector: str, method: str = "GET", **params: str) -> Any:
    """The names of the test's objects that it selects, or how it is refused."""
    try:
        listing = await cluster.admin.request(method, path, params={"fieldSelector": selector, **params})
    except ApiError as refusal:
        return refusal.status, refusal.reason, refusal.body["message"]
    # Each server has objects of its own beside them.
    return sorted({item["metadata"]["name"] for item in listing.get("items", ())} & NAMES)


async def differences(real: Cluster, sandbox: Cluster, questions: Iterator[tuple[str, str]]) -> list[Any]:
    """The questions, each a path and a selector, that the two answer in different ways."""
    limiter = asyncio.Semaphore(16)

    async def ask_both(path: str, selector: str) -> Any:
        async with limiter:
            answers = [await answer(cluster, path, selector) for cluster in (real, sandbox)]
        return None if answers[0] == answers[1] else (path, selector, *answers)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(ask_both(path, selector)) for path, selector in questions]
    return [task.result() for task in running if task.result() is not None]


async def test_each_field_label_is_taken_or_refused_as_by_the_real_api_server(
    complete_cluster: RealCluster, sandbox_cluster: SandboxCluster
) -> None:
    async def is_served() -> bool:
        answers = [await answer(complete_cluster, path_of(resource), "metadata.name=a") for resource in RESOURCES]
        return answers == [[]] * len(RESOURCES)

    await eventually(is_served)
    selectors = [f"{label}=none" for label in (*LABELS, *NEVER)] + ["spec.nodeName!=a", *MALFORMED]
    questions = ((path_of(resource), selector) for resource in RESOURCES for selector in selectors)
    assert await differences(complete_cluster, sandbox_cluster, questions) == []


@pytest.mark.parametrize(("method", "params"), [("GET", {"watch": "true"}), ("DELETE", {})], ids=["watch", "delete"])
async def test_watches_and_deletions_refuse_what_lists_refuse(
    real_cluster: RealCluster, sandbox_cluster: SandboxCluster, method: str, params: dict[str, str]
) -> None:
    path = "/api/v1/namespaces/default/pods"
    for selector in ("spec.priority=1", "spec.nodeName", "spec.nodeName=a=b"):
        answers = [
            await answer(cluster, path, selector, method, **params) for cluster in (real_cluster, sandbox_cluster)
        ]
        assert answers[0] == answers[1]
        assert answers[0][0] == 400


CONTAINERS = [{"name": "c", "image": "pause"}]
# The tests' API server has no admission that names the default account.
PLAIN = {"containers": CONTAINERS, "serviceAccountName": "default"}
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
ENDS: Json = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
REFERENCE = {
    "kind": "Pod",
    "namespace": "default",
    "name": "pinned",
    "uid": "1-2",
    "apiVersion": "v1",
    "resourceVersion": "7",
    "fieldPath": "spec.x",
}


def of(kind: str, name: str, api_version: str = "v1", **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def event(name: str, **fields: Any) -> Json:
    return of("Event", name, involvedObject=REFERENCE, type="Normal", reason="Pulled", message="m", **fields)


NAMESPACED = "/api/v1/namespaces/default"
OBJECTS: tuple[tuple[str, Json, Json | None], ...] = (
    ("/api/v1/nodes", of("Node", "n1", spec={"unschedulable": True}), None),
    ("/api/v1/nodes", of("Node", "n2"), None),
    (f"{NAMESPACED}/pods", of("Pod", "plain", spec=PLAIN), None),
    (
        f"{NAMESPACED}/pods",
        of(
            "Pod",
            "pinned",
            spec={
                "containers": CONTAINERS,
                "nodeName": "n1",
                "schedulerName": "podium",
                "restartPolicy": "Never",
                "serviceAccountName": "builder",
                "hostNetwork": True,
            },
        ),
        {"phase": "Running", "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}]},
    ),
    (
        f"{NAMESPACED}/pods",
        of("Pod", "nominated", spec=PLAIN),
        {"phase": "Pending", "nominatedNodeName": "n2"},
    ),
    (f"{NAMESPACED}/secrets", of("Secret", "key", type="example.com/key"), None),
    (
        f"{NAMESPACED}/services",
        of("Service", "headless", spec={"clusterIP": "None", "type": "ClusterIP", "ports": [{"port": 80}]}),
        None,
    ),
    (f"{NAMESPACED}/replicationcontrollers", of("ReplicationController", "idle", spec={"template": TEMPLATE}), None),
    (f"{NAMESPACED}/events", event("old", source={"component": "kubelet"}), None),
    (
        f"{NAMESPACED}/events",
        event("new", reportingComponent="podium", reportingInstance="podium-1", action="Binding",
              eventTime="2026-01-01T00:00:00.000000Z"),
        None,
    ),
    ("/apis/batch/v1/namespaces/default/jobs", of("Job", "once", "batch/v1", spec={"template": ENDS}), None),
    (
        "/apis/resource.k8s.io/v1/resourceslices",
        of(
            "ResourceSlice",
            "gpus",
            "resource.k8s.io/v1",
            spec={
                "nodeName": "n1",
                "driver": "gpu.example.com",
                "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            },
        ),
        None,
    ),
)  # fmt: skip
NAMES = {"default"} | {obj["metadata"]["name"] for _, obj, _ in OBJECTS}
VALUES = (
    *("", "0", "1", "true", "false", "n1", "n2", "plain", "pinned", "default", "podium", "default-scheduler"),
    *("Never", "Always", "builder", "Running", "Pending", "Active", "10.1.1.1", "example.com/key", "None", "ClusterIP"),
    *("kubelet", "Pulled", "Normal", "Pod", "1-2", "v1", "7", "spec.x", "gpu.example.com"),
)


async def test_each_field_selects_the_objects_that_the_real_api_server_selects(
    real_cluster: RealCluster, sandbox_cluster: SandboxCluster
) -> None:
    for cluster in (real_cluster, sandbox_cluster):
        for path, obj, status in OBJECTS:
            await cluster.admin.create(path, obj)
            if status is not None:
                await cluster.admin.patch(f"{path}/{obj['metadata']['name']}/status", {"status": status})
    resources = [
        resource
        for resource in RESOURCES
        if any(path.endswith(f"/{resource.plural}") for path, _, _ in OBJECTS) or resource.plural == "namespaces"
    ]
    questions = (
        (path_of(resource), f"{label}{operator}{value}")
        for resource in resources
        for label in selectable_fields(resource).fields
        for operator in ("=", "!=")
        for value in VALUES
    )
    assert await differences(real_cluster, sandbox_cluster, questions) == []
