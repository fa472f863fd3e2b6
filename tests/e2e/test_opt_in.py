"""The admission policy in examples/admission, which gives the pods of labelled namespaces to podium."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.control_plane.client import ApiError
from tests.e2e.cluster import Json, RealCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.waiting import eventually
from tests.manifests import node, pod

pytestmark = [pytest.mark.anyio, pytest.mark.control_plane]

POLICY = Path(__file__).parents[2] / "examples/admission/schedule-by-label.yaml"
GROUP = "/apis/admissionregistration.k8s.io/v1"
COLLECTIONS = {
    "MutatingAdmissionPolicy": f"{GROUP}/mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": f"{GROUP}/mutatingadmissionpolicybindings",
}


async def test_pods_of_labelled_namespaces_that_chose_no_scheduler_are_podiums(
    real_cluster: RealCluster, start: StartDaemon
) -> None:
    admin = real_cluster.admin
    manifests: list[Json] = list(yaml.safe_load_all(POLICY.read_text()))
    try:
        for manifest in manifests:
            await admin.create(COLLECTIONS[manifest["kind"]], manifest)
        for name, labels in {"shop": {"podium/schedules": "true"}, "bank": {}}.items():
            await admin.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})

        async def scheduler_of(namespace: str, scheduler_name: str, **params: str) -> str:
            item = pod("web", scheduler=scheduler_name)
            item["metadata"]["namespace"] = namespace
            path = f"/api/v1/namespaces/{namespace}/pods"
            return str((await admin.request("POST", path, item, params=params))["spec"]["schedulerName"])

        async def is_in_force() -> bool:
            try:
                return await scheduler_of("shop", "default-scheduler", dryRun="All") == "podium"
            except ApiError as error:
                raise AssertionError(str(error)) from error

        await eventually(is_in_force)
        assert await scheduler_of("shop", "own", dryRun="All") == "own"
        assert await scheduler_of("bank", "default-scheduler", dryRun="All") == "default-scheduler"
        await scheduler_of("shop", "default-scheduler")
        await real_cluster.create(node("there"))
        await start(real_cluster)

        async def is_bound() -> bool:
            return bool((await admin.get("/api/v1/namespaces/shop/pods/web"))["spec"].get("nodeName"))

        await eventually(is_bound)
    finally:
        for manifest in manifests:
            with suppress(ApiError):
                await admin.delete(f"{COLLECTIONS[manifest['kind']]}/{manifest['metadata']['name']}")
