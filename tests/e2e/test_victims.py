"""How victims go: deleted by uid, stopped in memory where they are not bound yet, or not at all."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.control_plane.client import ApiError
from tests.e2e.cluster import PODS, Cluster, Json, RealCluster, SandboxCluster
from tests.e2e.conftest import StartDaemon
from tests.e2e.priorities import create_priorities, high, running
from tests.e2e.test_plugins import GANG, gang_of_three, members
from tests.e2e.test_volumes import CLAIMS, CLASSES, claim, storage_class, user, wait_selected
from tests.e2e.waiting import eventually
from tests.manifests import condition, node, pod
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{_ADMISSION}/validatingadmissionpolicies", f"{_ADMISSION}/validatingadmissionpolicybindings"


@asynccontextmanager
async def pods_deleted_only_if(cluster: RealCluster, expression: str) -> AsyncIterator[None]:
    """The API server refuses to delete a pod unless the expression holds, which it must not for a plain delete."""
    name = {"name": "deletes"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    await cluster.admin.create(POLICIES, {"metadata": name, "spec": policy})
    await cluster.admin.create(
        BINDINGS, {"metadata": name, "spec": {"policyName": "deletes", "validationActions": ["Deny"]}}
    )
    await cluster.create(pod("probe", scheduler="nobody"))

    async def is_refused() -> bool:
        try:
            await cluster.admin.request("DELETE", f"{PODS}/probe", params={"dryRun": "All"})
        except ApiError as error:
            return error.status == 422
        return False

    async def is_allowed() -> bool:
        return not await is_refused()

    try:
        await eventually(is_refused)
        yield
    finally:
        await cluster.admin.delete(f"{BINDINGS}/deletes")
        await cluster.admin.delete(f"{POLICIES}/deletes")
        await eventually(is_allowed)


@pytest.mark.control_plane
async def test_a_victim_is_deleted_by_its_uid(real_cluster: RealCluster, start: StartDaemon) -> None:
    await create_priorities(real_cluster)
    await real_cluster.create(node("only", cpu="4"), running("small", "only"))
    await start(real_cluster)
    by_uid = "has(request.options.preconditions.uid) && request.options.preconditions.uid == oldObject.metadata.uid"
    async with pods_deleted_only_if(real_cluster, by_uid):
        await real_cluster.create(high("urgent"))
        assert (await real_cluster.wait_bound(["urgent"]))["urgent"] == "only"
    assert "small" not in await real_cluster.pods()


@pytest.mark.control_plane
async def test_a_victim_that_must_not_be_deleted_stays_as_it_was_until_it_may(
    real_cluster: RealCluster, start: StartDaemon
) -> None:
    await create_priorities(real_cluster)
    await real_cluster.create(node("only", cpu="4"), running("small", "only"))
    pod_before = await real_cluster.pod("small")
    daemon = await start(real_cluster)
    async with pods_deleted_only_if(real_cluster, "false"):
        await real_cluster.create(high("urgent"))

        async def has_failed() -> bool:
            return len(daemon.log("Victim could not be preempted")) >= 2

        async def as_before() -> bool:
            pod_after = await real_cluster.pod("small")
            return bool(pod_after["status"] == pod_before["status"] and pod_after["spec"] == pod_before["spec"])

        await eventually(has_failed)
        await eventually(as_before)
        assert not await real_cluster.events("Preempted")
        await real_cluster.wait_condition("urgent")
        # Of one answer, lest the pod change its queue between two.
        assert await daemon.metric("scheduler_pending_pods") == 1
    assert (await real_cluster.wait_bound(["urgent"]))["urgent"] == "only"


async def wait_rejected_in_memory(cluster: Cluster, victim: Json, preemptor: str) -> None:
    """Until the preemptor is bound; its victim must still be there, told why, and not deleted."""
    name = victim["metadata"]["name"]
    await cluster.wait_bound([preemptor])
    pod_seen = await cluster.pod(name)
    assert pod_seen["metadata"]["uid"] == victim["metadata"]["uid"]
    assert "deletionTimestamp" not in pod_seen["metadata"]
    assert condition(pod_seen, "DisruptionTarget") == {}
    await cluster.wait_events("Preempted", 1)
    [event] = await cluster.events("Preempted")
    assert event["regarding"]["name"] == name
    assert event["note"].endswith("on node only (in kube-scheduler memory).")


async def test_a_victim_that_waits_at_permit_is_rejected_rather_than_deleted(
    cluster: Cluster, start: StartDaemon
) -> None:
    await create_priorities(cluster)
    await cluster.create(node("only", cpu="4"))
    await start(cluster, gang_of_three(600), flags=("--plugin", f"{GANG}:Gang"))
    [member] = members("a")
    member["spec"] |= {"priorityClassName": "low"}
    member["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
    [victim] = await cluster.create(member)

    async def waits() -> object:
        return (await cluster.pod("a"))["status"].get("nominatedNodeName")

    await eventually(waits)
    await cluster.create(high("urgent"))
    await wait_rejected_in_memory(cluster, victim, "urgent")

    async def waits_no_longer() -> bool:
        return not await waits()

    await eventually(waits_no_longer)


async def test_a_victim_in_pre_bind_is_stopped_rather_than_deleted(cluster: Cluster, start: StartDaemon) -> None:
    await create_priorities(cluster)
    await cluster.create(node("only", cpu="4"))
    await cluster.admin.create(CLASSES, storage_class("made", "disk.example.com"))
    await cluster.admin.create(CLAIMS, claim("data", "1Gi", "made"))
    await start(cluster)
    [victim] = await cluster.create(user("web", "data", cpu="4", priorityClassName="low"))
    await wait_selected(cluster, "data")
    await cluster.create(high("urgent"))
    await wait_rejected_in_memory(cluster, victim, "urgent")


async def test_a_victim_that_cannot_be_deleted_stays_as_it_was_until_it_can(
    sandbox_cluster: SandboxCluster, start: StartDaemon
) -> None:
    await create_priorities(sandbox_cluster)
    await sandbox_cluster.create(node("only", cpu="4"), running("small", "only"))
    pod_before = await sandbox_cluster.pod("small")
    sandbox_cluster.sandbox.faults.server_error(None, code=403, verb="delete", resource="pods")
    daemon = await start(sandbox_cluster)
    started_s = time.monotonic()
    await sandbox_cluster.create(high("urgent"))

    async def has_failed() -> bool:
        return len(daemon.log("Victim could not be preempted")) >= 2

    await eventually(has_failed)

    async def as_before() -> bool:
        pod_after = await sandbox_cluster.pod("small")
        return pod_after["status"].get("conditions", []) == pod_before["status"].get("conditions", [])

    await eventually(as_before)
    assert not await sandbox_cluster.events("Preempted")
    attempts = await daemon.metric("scheduler_preemption_attempts_total")
    assert attempts <= 2 + time.monotonic() - started_s  # a second between two of them

    sandbox_cluster.sandbox.faults.clear()
    assert (await sandbox_cluster.wait_bound(["urgent"]))["urgent"] == "only"
    assert "small" not in await sandbox_cluster.pods()


async def test_a_delete_without_an_answer_is_made_again(sandbox_cluster: SandboxCluster, start: StartDaemon) -> None:
    await create_priorities(sandbox_cluster)
    await sandbox_cluster.create(node("only", cpu="4"), running("small", "only"))
    daemon = await start(sandbox_cluster)
    sandbox_cluster.sandbox.faults.lose_response(verb="delete", resource="pods")
    with anyio.fail_after(PATIENCE_S):
        await sandbox_cluster.create(high("urgent"))
        await sandbox_cluster.wait_bound(["urgent"])
    assert not daemon.log("Victim could not be preempted")
